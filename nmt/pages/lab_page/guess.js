// A game: guess the word alignment, then see the grammar's alignment, the model's, and their error rates.

import { colorOf, css, inkOn } from "/page/colors.js";
import { clean, element, fillSelect, fillTable, make } from "/page/element.js";
import { placeName } from "/page/inspector.js";
import { ask } from "/page/server.js";
import { MEAN, state, writeAddress } from "/page/state.js";
import { label } from "/page/text.js";

let pairs = [];
const chosenPair = () => pairs.find(({ source }) => source === element["guess-pair"].value);
const same = ([i, j]) => ([k, l]) => i === k && j === l;

// `examples` are the sentences in the run's languages whose alignments are known.
export function setPairs(examples, report) {
  pairs = examples;
  element["guess-box"].hidden = pairs.length === 0;
  if (!pairs.length) return;
  if (state.pair && !pairs.some(({ source }) => source === state.pair)) Object.assign(state, { pair: "", guess: [], revealed: false });
  fillSelect(element["guess-pair"], pairs.map(({ source }) => [source, source]), state.pair || pairs[0].source);
  if (state.guess.length > 0 || state.revealed) element["guess-box"].open = true;
  drawGuess(report);
}

export function listenToGuess(report) {
  element["guess-pair"].addEventListener("change", () => restart(report));
  element["guess-clear"].addEventListener("click", () => restart(report));
  element["guess-reveal"].addEventListener("click", () => {
    Object.assign(state, { pair: element["guess-pair"].value, revealed: true });
    writeAddress();
    drawGuess(report);
  });
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  element["guess-table"].addEventListener("keydown", (event) => {
    const move = moves[event.key], { i, j } = event.target.dataset;
    if (!move || i === undefined) return;
    event.preventDefault();
    focusCell(Number(i) + move[1], Number(j) + move[0]);
  });
}

function restart(report) {
  Object.assign(state, { pair: element["guess-pair"].value, guess: [], revealed: false });
  writeAddress();
  drawGuess(report);
}

function focusCell(i, j) {
  const cell = element["guess-table"].querySelector(`button[data-i='${i}'][data-j='${j}']`);
  if (!cell) return;
  for (const each of element["guess-table"].querySelectorAll("button")) each.tabIndex = -1;
  cell.tabIndex = 0;
  cell.focus();
}

export async function drawGuess(report) {
  const pair = chosenPair();
  if (!pair) return;
  let found = null;
  if (state.revealed) {
    // The links come from cross attention: from the selected layer and head, or from the mean if another site is selected.
    const choice = (value) => value === MEAN || state.site !== "cross" ? null : value;
    const place = { layer: choice(state.layer), head: choice(state.head) };
    try { found = await ask("/v1/align", { run: state.run, text: pair.source, guess: state.guess, ...place }); } catch (error) { report(error); return; }
    if (chosenPair() !== pair || !state.revealed) return; // a later question has been answered
    element["guess-legend"].textContent = label("guessLegend", placeName({ site: "cross", ...place }));
  }
  element["guess-legend"].hidden = element["guess-rates"].hidden = !found;
  drawTable(pair, found, report);
  if (found) drawRates(found);
}

function drawTable(pair, found, report) {
  const source = pair.source.split(" "), target = pair.target.split(" ");
  const focused = element["guess-table"].contains(document.activeElement) ? document.activeElement.dataset : null;
  const most = found ? Math.max(...found.weights.flat()) : 0;
  const header = make("tr", {}, make("td"), ...source.map((word) => make("th", { scope: "col" }, make("span", {}, word))));
  const rows = target.map((word, j) => make("tr", {}, make("th", { scope: "row" }, word), ...source.map((from, i) => {
    const guessed = state.guess.some(same([i, j]));
    const cell = make("button", {
      type: "button", "data-i": i, "data-j": j, tabindex: i === 0 && j === 0 ? 0 : -1,
      "aria-pressed": guessed, "aria-label": label("guessed", clean(word), clean(from)),
    });
    const is = (links) => found && links.some(same([i, j]));
    cell.textContent = `${is(found?.sure) ? "●" : is(found?.possible) ? "○" : ""}${guessed ? "✓" : ""}`;
    cell.classList.toggle("largest", Boolean(is(found?.links.model)));
    if (found) {
      const color = colorOf(most > 0 ? found.weights[j][i] / most : 0);
      cell.style.background = css(color);
      cell.style.color = inkOn(color);
      cell.title = found.weights[j][i].toFixed(3);
    }
    cell.addEventListener("click", () => {
      state.guess = guessed ? state.guess.filter((link) => !same([i, j])(link)) : [...state.guess, [i, j]];
      Object.assign(state, { pair: pair.source, revealed: false });
      writeAddress();
      drawGuess(report);
    });
    return make("td", {}, cell);
  })));
  element["guess-table"].replaceChildren(header, ...rows);
  if (focused) focusCell(focused.i, focused.j);
}

function drawRates({ rates }) {
  const names = { guess: "you", model: "model", diagonal: "diagonal" };
  fillTable(element["guess-rates"], [
    ["", label("aer"), label("precision"), label("recall")],
    ...Object.keys(names).filter((name) => rates[name]).map((name) => [
      label(names[name]), ...["aer", "precision", "recall"].map((rate) => rates[name][rate].toFixed(2)),
    ]),
  ]);
}
