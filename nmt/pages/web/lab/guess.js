// @ts-check
// A game: guess the word alignment, then see the grammar's alignment, the model's, and their error rates.

import { colorOf, css, inkOn } from "../colors.js";
import { element, fillSelect, fillTable, listenToTable, make } from "../dom.js";
import { label } from "../i18n.js";
import { decimal } from "../language.js";
import { largest } from "../map.js";
import { engine, isOutdated, latest, sentenceOf } from "./asking.js";
import { placeName } from "./inspector.js";
import { isPresenting } from "./presentation.js";
import { drawAgain } from "./signals.js";
import { selectedPlace, state, writeAddress } from "./state.js";
import { quoted } from "./wording.js";

/** @typedef {import("../engine/interface.js").Pair} Pair */
/** @typedef {import("../engine/interface.js").Alignment} Alignment */

/** @type {Pair[]} */
let pairs = [];
const chosenPair = () => pairs.find(({ source }) => source === element["guess-pair"].value);
export const hasKnownAlignment = (/** @type {string} */ text) => pairs.some(({ source }) => source === text);
/** What the table shows. */
const shownGuess = () => JSON.stringify([chosenPair(), state.guess, state.revealed]);
let drawn = "";
const same = (/** @type {number[]} */ [i, j]) => (/** @type {number[]} */ [k, l]) => i === k && j === l;

/** @param {Pair[]} examples the sentences in the run's languages whose alignments are known */
export function setPairs(examples) {
  pairs = examples;
  element["guess-box"].hidden = pairs.length === 0;
  if (!pairs.length) return;
  if (state.pair && !pairs.some(({ source }) => source === state.pair)) Object.assign(state, { pair: "", guess: [], revealed: false });
  fillSelect(element["guess-pair"], pairs.map(({ source }) => [source, source]), state.pair || pairs[0].source);
  if (state.guess.length > 0 || state.revealed) element["guess-box"].open = true;
  // A cell that is being clicked must not be replaced by an equal one.
  if (state.revealed || drawn !== shownGuess()) drawGuess();
}

export function listenToGuess() {
  const change = (/** @type {object} */ changes) => {
    Object.assign(state, { pair: element["guess-pair"].value, ...changes });
    writeAddress();
    drawGuess();
  };
  element["guess-pair"].addEventListener("change", () => change({ guess: [], revealed: false }));
  element["guess-clear"].addEventListener("click", () => change({ guess: [], revealed: false }));
  element["guess-reveal"].addEventListener("click", () => change({ revealed: true }));
  element["guess-table"].addEventListener("click", (event) => {
    const { i, j } = /** @type {HTMLElement} */ (event.target).dataset;
    if (i === undefined) return;
    const link = [Number(i), Number(j)], isLink = same(link);
    change({ guess: state.guess.some(isLink) ? state.guess.filter((other) => !isLink(other)) : [...state.guess, link], revealed: false });
  });
  listenToTable(element["guess-table"]);
  // In a presentation, the guess takes the place of the map, which returns with the sentence.
  element["guess-box"].addEventListener("toggle", () => {
    if (!isPresenting()) return;
    if (element["guess-box"].open) element["guess-box"].scrollIntoView({ block: "start" });
    else drawAgain();
  });
  const close = () => { if (isPresenting()) element["guess-box"].open = false; };
  element.asking.addEventListener("click", close);
  element.text.addEventListener("focus", close);
  element.ask.addEventListener("submit", close);
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
  drawTable(pair, alignment);
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
