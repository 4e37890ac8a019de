// @ts-check
// A game: guess the word alignment, then see the grammar's alignment, the model's, and their error rates.

import { colorOf, css, inkOn } from "../colors.js";
import { clamp, element, fillSelect, fillTable, listenToTable, make, part } from "../dom.js";
import { label } from "../i18n.js";
import { decimal } from "../language.js";
import { largest } from "../map.js";
import { engine, isOutdated, latest, sentenceOf } from "./asking.js";
import { placeName } from "./inspector.js";
import { isPresenting, usedHeight } from "./presentation.js";
import { runNamed } from "./runs.js";
import { drawAgain } from "./signals.js";
import { noGuess, selectedPlace, state, writeAddress } from "./state.js";
import { quoted } from "./wording.js";

/** @typedef {import("../engine/interface.js").Pair} Pair */
/** @typedef {import("../engine/interface.js").Alignment} Alignment */

const CELL = 32, LEAST_CELL = 24, PADDING = 6; // pixels; the padding is that of .scroll in style.css
// In a presentation, cells may be higher than elsewhere, if the window has room for them and for this below the table.
const CELL_OF_HEIGHT = 0.056, BELOW = 0.045;
const SHARE_BESIDE = 0.6, wide = matchMedia("(min-width: 1000px)"); // of the table's width, where its error rates are beside it

/** @type {Pair[]} */
let pairs = [];
const chosenPair = () => pairs.find(({ source }) => source === element["guess-pair"].value);
export const hasKnownAlignment = (/** @type {string} */ text) => pairs.some(({ source }) => source === text);
/** What the table shows. */
const shownGuess = () => JSON.stringify([chosenPair(), state.guess, state.revealed]);
let drawn = "";
const same = (/** @type {number[]} */ [i, j]) => (/** @type {number[]} */ [k, l]) => i === k && j === l;

/**
 * @param {Pair[] | null} examples the sentences in the run's languages whose alignments are known; null if the engine did
 *   not say which, so that the address keeps its guess
 */
export function setPairs(examples) {
  const box = element["guess-box"];
  pairs = examples ?? [];
  box.hidden = pairs.length === 0;
  if (!examples) return;
  if (!pairs.length) box.open = false;
  // The guess was about a sentence of another run.
  if (!pairs.length || state.pair && !hasKnownAlignment(state.pair)) Object.assign(state, noGuess());
  if (box.open && !state.pair) state.pair = pairs[0].source;
  // Without a sentence, the address is written together with the next one: the Back button must return to the old one.
  if (state.text) writeAddress();
  if (!pairs.length) return;
  fillSelect(element["guess-pair"], pairs.map(({ source }) => [source, source]), state.pair || pairs[0].source);
  // A cell that is being clicked must not be replaced by an equal one.
  if (state.revealed || drawn !== shownGuess()) drawGuess();
}

/** Opens the guess of the address, or closes it if the address has none. */
export function openGuess() { element["guess-box"].open = state.pair !== "" || state.guess.length > 0 || state.revealed; }

/** The guess ends, and the map is back. */
function close() {
  const { maps, text, "guess-box": box, "try-guess": tryGuess } = element;
  box.open = false;
  // A presentation hides the summary, and without a translation there is nothing to try.
  const opener = !isPresenting() ? part(box, "summary") : tryGuess.checkVisibility() ? tryGuess : text;
  opener.focus({ preventScroll: true });
  maps.scrollIntoView({ block: "nearest" });
}

export function listenToGuess() {
  const change = (/** @type {object} */ changes) => {
    Object.assign(state, changes, { pair: element["guess-pair"].value });
    writeAddress();
    drawGuess();
  };
  element["guess-pair"].addEventListener("change", () => change(noGuess()));
  element["guess-clear"].addEventListener("click", () => change(noGuess()));
  element["guess-reveal"].addEventListener("click", () => change({ revealed: true }));
  element["guess-table"].addEventListener("click", (event) => {
    const { i, j } = /** @type {HTMLElement} */ (event.target).dataset;
    if (i === undefined) return;
    const link = [Number(i), Number(j)], isLink = same(link);
    change({ guess: state.guess.some(isLink) ? state.guess.filter((other) => !isLink(other)) : [...state.guess, link], revealed: false });
  });
  listenToTable(element["guess-table"]);
  element["guess-close"].addEventListener("click", close);
  element["guess-box"].addEventListener("toggle", () => {
    const { open } = element["guess-box"];
    if (open) fitGuess();
    // The address has a guess as long as it is open.
    if (pairs.length && open !== (state.pair !== "")) {
      Object.assign(state, open ? { pair: element["guess-pair"].value } : noGuess());
      writeAddress();
      if (!open) drawGuess();
    }
    // In a presentation, the guess takes the place of the sentence and the map.
    if (!isPresenting()) return;
    if (open) element["guess-box"].scrollIntoView({ block: "start" });
    else drawAgain();
  });
}

/** Makes the cells as large as the page has room for. In a presentation, all of the table is in the window. */
export function fitGuess() {
  const table = element["guess-table"], isLarge = isPresenting();
  if (!table.rows.length || !table.checkVisibility()) return;
  const columns = table.rows[0].cells.length - 1, rows = table.rows.length - 1;
  const most = isLarge ? CELL_OF_HEIGHT * usedHeight() : CELL;
  table.style.setProperty("--cell", `${most}px`);
  // What is missing in the window is taken from the cells.
  const room = element["guess-board"].clientWidth * (isLarge && wide.matches ? SHARE_BESIDE : 1) - PADDING;
  const across = most + (room - table.offsetWidth) / columns;
  const high = isLarge ? most + (innerHeight * (1 - BELOW) - table.getBoundingClientRect().bottom - scrollY) / rows : most;
  table.style.setProperty("--cell", `${Math.floor(clamp(Math.min(across, high), most, LEAST_CELL))}px`);
}

/** The two sentences as running text. @param {Pair} pair */
function showText({ source, target }) {
  const run = runNamed(state.run);
  element["guess-text"].replaceChildren(make("p", { lang: run?.source ?? "" }, source), make("p", { lang: run?.target ?? "" }, target));
}

/** @param {number} i @param {number} j */
function focusCell(i, j) {
  const cells = /** @type {NodeListOf<HTMLElement>} */ (element["guess-table"].querySelectorAll("button"));
  const cell = [...cells].find(({ dataset }) => dataset.i === String(i) && dataset.j === String(j));
  if (!cell) return;
  for (const other of cells) other.tabIndex = -1;
  cell.tabIndex = 0;
  cell.focus();
}

export async function drawGuess() {
  const pair = chosenPair();
  if (!pair) return;
  /** @type {Alignment | null} */
  let alignment = null;
  if (state.revealed) {
    // The links come from cross attention: from the selected layer and head, or from the mean if another site is selected.
    const { site, ...selected } = selectedPlace(), place = site === "cross" ? selected : { layer: null, head: null };
    const question = { run: state.run, text: pair.source, guess: state.guess, ...place };
    try { alignment = await latest("align", (signal) => engine.align(question, signal)); } catch (error) {
      if (isOutdated(error)) return;
      element["guess-legend"].textContent = sentenceOf(error);
      element["guess-legend"].hidden = false;
      return;
    }
    if (chosenPair() !== pair || !state.revealed) return; // a later question has been answered
    element["guess-legend"].textContent = label("guessLegend", placeName({ site: "cross", ...place }));
  }
  element["guess-legend"].hidden = element["guess-rates"].hidden = !alignment;
  showText(pair);
  drawTable(pair, alignment);
  fitGuess();
  if (alignment) drawRates(alignment);
}

/** @param {Pair} pair @param {Alignment | null} alignment */
function drawTable(pair, alignment) {
  const source = pair.source.split(" "), target = pair.target.split(" ");
  const focused = element["guess-table"].contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset : null;
  const most = alignment ? largest(alignment.weights) : 0;
  const header = make("tr", {}, make("td"), ...source.map((word) => make("th", { scope: "col" }, make("span", {}, word))));
  const rows = target.map((word, j) => make("tr", {}, make("th", { scope: "row" }, word), ...source.map((from, i) => {
    const guessed = state.guess.some(same([i, j])), has = (/** @type {number[][] | undefined} */ links) => links?.some(same([i, j]));
    const sign = has(alignment?.sure) ? "●" : has(alignment?.possible) ? "○" : "";
    const cell = make("button", {
      type: "button", "data-i": i, "data-j": j, tabindex: i === 0 && j === 0 ? 0 : -1, class: has(alignment?.links.model) ? "largest" : "",
      "aria-pressed": guessed, "aria-label": label("guessed", quoted(word), quoted(from)),
    }, `${sign}${guessed ? "✓" : ""}`);
    if (alignment) {
      const kind = label(sign === "●" ? "sureLink" : sign ? "possibleLink" : "noLink");
      cell.ariaLabel = `${cell.ariaLabel}: ${kind}, ${decimal(alignment.weights[j][i], 3)}`;
      const weight = alignment.weights[j][i], color = colorOf(most > 0 ? weight / most : 0);
      Object.assign(cell.style, { background: css(color), color: inkOn(color) });
      cell.title = decimal(weight, 3);
    }
    return make("td", {}, cell);
  })));
  element["guess-table"].replaceChildren(header, ...rows);
  drawn = shownGuess();
  if (focused) focusCell(Number(focused.i), Number(focused.j));
}

/** @param {Alignment} alignment */
function drawRates({ rates }) {
  const names = Object.entries({ guess: "you", model: "model", diagonal: "diagonal" }).filter(([name]) => rates[name]);
  fillTable(element["guess-rates"], [
    ["", label("aer"), label("precision"), label("recall")],
    ...names.map(([name, text]) => [label(text), ...[rates[name].aer, rates[name].precision, rates[name].recall].map((rate) => decimal(rate, 2))]),
  ]);
}
