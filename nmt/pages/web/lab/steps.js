// @ts-check
// The translation step by step: later rows and words are hidden, so that a lecturer can stop at a step.

import { clamp, element, hasModifier, hit, stillness } from "../dom.js";
import { label } from "../i18n.js";
import { answers, shownMap } from "./answers.js";
import { selectCell } from "./signals.js";
import { state } from "./state.js";
import { closeMenu } from "./translation.js";

/** @typedef {import("./maps.js").LabMap} LabMap */

// What opens a panel, or changes something: both are about the whole translation.
const NEEDS_ALL = "#tries button, #answer [data-word], #word-menu button, #actions button, #alternatives button, #changes button, #more summary";
const PLAYED = 1200, GROWING = 260, BETWEEN = 22; // milliseconds for a step, and for a weight of its row

/** How many rows are shown; null: all. @type {number | null} */
let step = null;
// The timer that goes on by itself; 0: none.
let playing = 0;

/** Hides what comes after the step, in a map that has just been drawn. @param {LabMap | null} map */
export function hideLater(map) {
  element.steps.hidden = !map || state.site === "encoder_self";
  if (!map || element.steps.hidden) step = null;
  const rows = map?.rows.length ?? 0, isOn = step !== null;
  const last = step === null ? rows : clamp(step, rows, 1);
  // The words of the translation end where the pieces of the last row end.
  const end = map && last ? map.rowSpans[last - 1][1] : 0;
  for (const item of /** @type {NodeListOf<SVGElement>} */ (element.intact.querySelectorAll(".map [data-row]"))) {
    item.classList.toggle("later", Number(item.dataset.row) >= last);
  }
  for (const item of /** @type {NodeListOf<HTMLElement>} */ (element.answer.querySelectorAll("[data-from]"))) {
    item.classList.toggle("later", isOn && Number(item.dataset.from) >= end);
  }
  element["step-back"].disabled = !isOn || last <= 1;
  element["step-all"].hidden = !isOn;
  element["step-name"].textContent = step === null ? "" : label("stepOf", last, rows);
  if (isOn && step !== grown) grow(last - 1);
  grown = step;
}

/** The step whose weights have grown. @type {number | null} */
let grown = null;

/** Lets the weights of a new row appear from left to right. @param {number} row */
function grow(row) {
  if (stillness.matches) return;
  element.intact.querySelectorAll(`.map .cell[data-row="${row}"]`).forEach((cell, i) => {
    cell.animate([{ opacity: 0, transform: "scale(0.2)" }, {}], { duration: GROWING, delay: i * BETWEEN, easing: "ease-out", fill: "backwards" });
  });
}

/** Starts at the beginning for a new translation. */
export function forgetSteps() {
  step = null;
  play(false);
}

/** Ends the steps and shows everything. What is selected stays selected. */
export function showAllSteps() {
  if (step === null && !playing) return;
  forgetSteps();
  hideLater(shownMap(answers.intact));
}

/** Shows a step after the other, or stops. @param {boolean} on */
function play(on) {
  clearInterval(playing);
  playing = on ? setInterval(() => {
    go((step ?? 0) + 1);
    if (step === null) play(false);
  }, PLAYED) : 0;
  element["step-play"].textContent = label(on ? "pause" : "play");
  if (on) go(step === null ? 1 : step + 1);
}

/** @param {number | null} to */
function go(to) {
  closeMenu();
  const rows = shownMap(answers.intact)?.rows.length ?? 0;
  step = to === null || to > rows || !rows ? null : Math.max(to, 1);
  selectCell({ row: step === null ? null : step - 1, column: null });
}

export function listenToSteps() {
  play(false);
  element["step-play"].addEventListener("click", () => { play(!playing); });
  // Whoever does something else wants to look at it.
  for (const kind of ["pointerdown", "keydown"]) {
    document.addEventListener(kind, (event) => { if (playing && !hit(event, "#step-play")) play(false); });
  }
  // Before the button acts: what it selects must be visible.
  document.addEventListener("click", (event) => { if (hit(event, NEEDS_ALL)) showAllSteps(); }, { capture: true });
  element["step-on"].addEventListener("click", () => { go((step ?? 0) + 1); });
  element["step-back"].addEventListener("click", () => { go((step ?? 2) - 1); });
  element["step-all"].addEventListener("click", () => {
    go(null);
    element["step-on"].focus();
  });
  document.addEventListener("keydown", (event) => {
    const isFree = event.target === document.body || (event.target instanceof Element && event.target.closest(".map svg"));
    if (event.key !== " " || hasModifier(event) || !isFree || element.steps.hidden) return;
    event.preventDefault();
    go(event.shiftKey ? (step ?? 2) - 1 : (step ?? 0) + 1);
  });
}
