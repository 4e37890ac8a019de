// @ts-check
// The selection in a map, and the actions on it: change weights, take another piece, see the numbers.

import { button, element, fillTable, focusNear, make, part } from "../dom.js";
import { label } from "../i18n.js";
import { decimal, localized } from "../language.js";
import { MEAN, reweighted, strongest } from "../map.js";
import { spansOf } from "../words.js";
import { engine, latest } from "./asking.js";
import { drawCell } from "./cell_picture.js";
import { numbers, written } from "./equation.js";
import { askAgain, redraw } from "./signals.js";
import { beginWith, isKept, selectedPlace, setLocks, state, subject, writeAddress } from "./state.js";
import { complain } from "./status.js";
import { withTerms } from "./terms.js";
import { quoted } from "./wording.js";

/** @typedef {import("../engine/interface.js").Translation} Translation */
/** @typedef {import("../engine/interface.js").Change} Change */
/** @typedef {import("./maps.js").LabMap} LabMap */
/** @typedef {import("./state.js").Location} Location */
/** @typedef {import("./state.js").Edit} Edit */

const noHover = matchMedia("(hover: none)");

const range = (/** @type {[number, number]} */ [from, to]) => Array.from({ length: to - from }, (_, i) => from + i);
const spoken = (/** @type {LabMap} */ map, /** @type {number} */ row, /** @type {number} */ column) => `${quoted(map.rows[row])} → ${quoted(map.columns[column])}`;

/** The name of a site, layer and head in the language of the page. */
export function placeName({ site, layer, head } = selectedPlace()) {
  const heads = head === null ? (layer === null ? "" : label("everyHead")) : `${label("head")} ${head}`;
  const layers = layer === null ? (head === null ? label("allHeads") : "") : `${label("layer")} ${layer}`;
  return [label(site), layers, heads].filter(Boolean).join(", ");
}

// An edit is kept in the address, with its numbers as data.
const isNumber = (/** @type {string | number} */ value) => Number.isFinite(Number(value));
/** @param {Edit} edit */
function textOf({ says: [name, ...values], place }) {
  // A setting is kept by the name of its label.
  const shown = values.map((value, i) => isNumber(value) ? localized(String(value)) : name === "isSetting" && i === 0 ? label(String(value)) : value);
  return `${label(String(name), ...shown)} · ${placeName(place)}`;
}
const keyOf = (/** @type {string} */ kind, /** @type {Location} */ { site, layer, head }) => [kind, site, layer, head].join(" ");

/**
 * Adds an edit, replacing one of the same kind at the same place. New weights for a row also replace edits of its cells.
 * @param {string} kind @param {Edit["says"]} says @param {Change[]} changes
 */
function edit(kind, says, changes, place = selectedPlace()) {
  const key = keyOf(kind, place), cells = `${kind.replace("row", "cell")} `;
  const isReplaced = (/** @type {string} */ old) => old === key || (kind.startsWith("row") && old.startsWith(cells) && old.endsWith(keyOf("", place)));
  state.changes = [...state.changes.filter((old) => !isReplaced(old.key)), { key, says, place, changes }];
}

/**
 * Gives a cell this weight in each selected layer and head; the other cells of its row share the rest in proportion to
 * their weights in `map`, or else in the map without changes, `intact`. This becomes the row's only change. A word
 * means all its pieces.
 * @param {LabMap} map @param {number} row @param {number} column @param {number} weight @param {LabMap} intact
 */
export function setWeight(map, row, column, weight, intact = map) {
  const columns = range(map.columnSpans[column]);
  const changes = range(map.rowSpans[row]).flatMap((step) => map.rowsOf(step).map(({ layer, head, weights }, i) => ({
    site: state.site, layer, head, steps: [step], way: "weights",
    weights: reweighted(weights, columns, weight, intact.rowsOf(step)[i].weights, map.visible(step)).map((value) => Number(value.toFixed(6))),
  })));
  edit(`row ${map.rowSpans[row].join("-")}`, ["isWeight", spoken(map, row, column), weight.toFixed(2)], changes);
}

/** @typedef {import("../engine/interface.js").Location} Place */
const rowKey = (/** @type {LabMap} */ map, /** @type {number} */ row, /** @type {Place} */ place) => keyOf(`row ${map.rowSpans[row].join("-")}`, place);

/** The column to which a change gives all the weight of a row; "" if none does. @param {LabMap} map @param {number} row @param {Place} place */
export function lookedAt(map, row, place) {
  const changed = state.changes.find(({ key }) => key === rowKey(map, row, place));
  const weights = /** @type {number[] | undefined} */ (changed?.changes[0].weights);
  const column = weights ? map.columnSpans.findIndex((span) => range(span).reduce((sum, i) => sum + weights[i], 0) > 0.999) : -1;
  return column < 0 ? "" : column;
}

/** Takes back the change of a row's weights. @param {LabMap} map @param {number} row @param {Place} place */
export function restoreRow(map, row, place) {
  state.changes = state.changes.filter(({ key }) => key !== rowKey(map, row, place));
}

/** No row may attend to this column in the selected layers and heads. @param {LabMap} map @param {number} column */
export function blockWord(map, column) {
  const span = map.columnSpans[column];
  edit(`column ${span.join("-")}`, ["isBlocked", quoted(map.columns[column])], [{ ...selectedPlace(), way: "scale", columns: range(span), factor: 0 }]);
}

const wholeLayer = () => ({ ...selectedPlace(), head: null });

/** The value chosen for all heads of the selected layers. @param {string} what temperature, normalizer or half_width */
export const chosenForLayer = (what) => state.changes.find(({ key }) => key === keyOf(what, wholeLayer()))?.changes[0][what];

/** Sets that value; null restores the trained one. @param {string} what @param {string | number | null} value */
export function chooseForLayer(what, value) {
  if (value === null) state.changes = state.changes.filter(({ key }) => key !== keyOf(what, wholeLayer()));
  else edit(what, ["isSetting", what, value], [{ ...wholeLayer(), [what]: value }], wholeLayer());
}

/**
 * @param {LabMap | null} map the map that contains the selection
 * @param {LabMap | null} changed the same rows after the changes, if there are any
 * @param {Translation | null} intact the run's own translation
 */
export function drawInspector(map, changed, intact) {
  const focused = element.inspector.contains(document.activeElement);
  const isOwn = state.of === "intact", { row, column } = withinMap(map);
  const isFree = isOwn && map !== null && row !== null && column !== null && !map.isBlocked(row, column);
  element.selection.replaceChildren(...withTerms(describe(map, row, column, isOwn ? changed : null)));
  element["weight-box"].hidden = !isFree;
  if (isFree) {
    const weight = Math.min((changed ?? map).weights[row][column], 1);
    element.weight.value = weight;
    element["weight-value"].textContent = decimal(weight, 2);
  }
  const groups = map && isOwn ? actionsOn(map, row, column, isFree ? changed ?? map : null, intact) : [];
  // What is selected comes first, and what else can be changed is written smaller below it.
  const isMain = (/** @type {string} */ name) => name === (column !== null ? "onColumn" : row !== null ? "onRow" : "onHead") || name === "onCell";
  element.actions.replaceChildren(...groups.filter(([, buttons]) => buttons.length).sort(([one], [other]) => Number(isMain(other)) - Number(isMain(one))).map(([name, buttons]) => {
    // With a mean selected, "the whole head" would be several heads, so name them.
    const isOfSeveral = name === "onHead" && (state.layer === MEAN || state.head === MEAN);
    const title = make("span", { id: `of-${name}` }, isOfSeveral ? placeName() : label(name));
    return make("div", { role: "group", class: isMain(name) ? "" : "less", "aria-labelledby": title.id, title: placeName() }, title, ...buttons);
  }));
  drawEdits(intact);
  for (const note of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".unchanged"))) note.hidden = state.changes.length === 0;
  // The button that was pressed is gone, so move the focus to the map, where the arrow keys work.
  if (focused && document.activeElement === document.body) /** @type {SVGElement | null} */ (element.intact.querySelector(".map svg"))?.focus({ preventScroll: true });
  const steps = map && isOwn && row !== null ? range(map.rowSpans[row]) : null;
  drawAlternatives(steps, intact);
  drawExplanation(map, steps, map && column !== null ? map.columnSpans[column] : null, intact);
}

/** The selection as far as it is in the map. @param {LabMap | null} map */
const withinMap = (map) => ({
  row: map && state.row !== null && state.row < map.rows.length ? state.row : null,
  column: map && state.column !== null && state.column < map.columns.length ? state.column : null,
});

/**
 * The buttons that change the selected cell, row, column or head, by the name of what they change. `free` is the map with the cell's present weight; null
 * if no cell is selected, or its weight cannot change.
 * @param {LabMap} map @param {number | null} row @param {number | null} column @param {LabMap | null} free
 * @param {Translation | null} intact @returns {[string, HTMLElement[]][]}
 */
function actionsOn(map, row, column, free, intact) {
  /** @param {string} name @param {string} kind @param {Edit["says"]} says @param {object} change */
  const act = (name, kind, says, change) => button(label(name), () => { edit(kind, says, [{ ...selectedPlace(), ...change }]); askAgain(); });
  /** @type {HTMLElement[]} */
  const onCell = [], /** @type {HTMLElement[]} */ onRow = [], /** @type {HTMLElement[]} */ onColumn = [];
  const steps = row === null ? [] : range(map.rowSpans[row]), columns = column === null ? [] : range(map.columnSpans[column]);
  const [rowKey, columnKey] = [row === null ? "" : map.rowSpans[row].join("-"), column === null ? "" : map.columnSpans[column].join("-")];
  if (free && row !== null && column !== null) {
    const cell = spoken(map, row, column);
    onCell.push(
      act("blockCell", `cell ${rowKey} ${columnKey}`, ["isWeight", cell, 0], { way: "scale", columns, factor: 0, steps }),
      button(label("oneHot"), () => { setWeight(free, row, column, 1); askAgain(); }),
      act("boost", `cell ${rowKey} ${columnKey}`, ["isTimes", cell, 3], { way: "scale", columns, factor: 3, steps }),
    );
  }
  if (row !== null) {
    onRow.push(
      act("uniform", `row ${rowKey}`, ["isUniform", quoted(map.rows[row])], { way: "uniform", steps }),
      act("shuffle", `row ${rowKey}`, ["isShuffled", quoted(map.rows[row])], { way: "shuffled", steps }),
    );
    if (intact && state.site !== "encoder_self" && steps[0] > 0) {
      onRow.push(button(label("lock"), () => { state.prefix = intact.ids.slice(0, steps[0]); askAgain(); }));
    }
  }
  const isChosen = row !== null || column !== null || state.layer !== MEAN || state.head !== MEAN;
  if (column !== null) {
    onColumn.push(button(label("blockWord"), () => { blockWord(map, column); askAgain(); }));
  }
  return [["onCell", onCell], ["onRow", onRow], ["onColumn", onColumn], ["onHead", isChosen ? [act("off", "off", ["isOff"], { way: "off" })] : []]];
}

/** Lists the edits and the kept beginning, each with a button that removes it. @param {Translation | null} intact */
function drawEdits(intact) {
  /** @type {[string, () => void][]} */
  const items = state.changes.map((item, i) => [textOf(item), () => { state.changes.splice(i, 1); }]);
  if (state.prefix.length) {
    const kept = intact ? intact.pieces.slice(0, state.prefix.length).join("").replaceAll("\u2581", " ").trim() : "";
    items.push([label("locked", kept), () => { state.prefix = []; }]);
  }
  for (const [start, end] of intact ? spansOf(intact.pieces, "words") : []) {
    if (!state.locks.slice(start, end).some(isKept)) continue;
    const word = quoted(intact?.pieces.slice(start, end).join("") ?? "");
    items.push([label("lockedWord", word), () => { setLocks(start, end, []); }]);
  }
  element["changes-box"].hidden = items.length === 0;
  element.changes.replaceChildren(...items.map(([text, drop]) => {
    const remove = button("×", () => { drop(); askAgain(); });
    remove.setAttribute("aria-label", `${label("remove")}: ${text}`);
    return make("li", {}, text, remove);
  }));
  if (items.length > 1) {
    element.changes.append(make("li", { class: "all" }, button(label("removeAll"), () => {
      Object.assign(state, { changes: [], prefix: [], locks: [] });
      writeAddress(true); // the browser's Back button brings them back
      askAgain();
    })));
  }
}

/** @param {LabMap | null} map @param {number | null} row @param {number | null} column @param {LabMap | null} changed */
function describe(map, row, column, changed) {
  if (!map) return "";
  const predicts = state.site !== "encoder_self";
  if (row !== null && column !== null) {
    if (map.isBlocked(row, column)) return label(map.whyBlocked, quoted(map.rows[row]), quoted(map.columns[column]));
    const weight = label(predicts ? "weightPredicting" : "weight", quoted(map.rows[row]), quoted(map.columns[column]), decimal(map.weights[row][column], 3));
    return changed ? `${weight} ${label("now", decimal(changed.weights[row][column], 3))}` : weight;
  }
  if (row !== null) {
    const list = strongest(map.weights[row], map.columns, 4, 0.01).map(([text, weight]) => `${quoted(text)} ${decimal(weight, 2)}`);
    return label(predicts ? "rowPredicting" : "row", quoted(map.rows[row]), list.join(", "));
  }
  return column === null ? label(noHover.matches ? "hintOfTouch" : "hint") : label(state.site === "decoder_self" ? "columnOfRead" : "column", quoted(map.columns[column]));
}

// One answer covers all positions of a translation.
/** @type {WeakMap<Translation, Promise<import("../engine/interface.js").Alternative[][]>>} */
const alternativesOf = new WeakMap();

// The chip that lost the focus when the chips were replaced; -1 if none did.
let lostChip = -1;
/** The chip that has the focus, or had it before the chips were replaced. */
const focusedChip = () => Math.max(lostChip, [...element.alternatives.children].indexOf(/** @type {Element} */ (document.activeElement)));

/** @param {number[] | null} steps @param {Translation | null} intact */
async function drawAlternatives(steps, intact) {
  element["alternatives-box"].hidden = steps === null || state.site === "encoder_self";
  lostChip = focusedChip();
  element.alternatives.replaceChildren(); // the pieces of an earlier selection
  if (!intact || !steps || state.site === "encoder_self") return;
  try {
    const chips = await alternativesAt(steps[0], intact);
    lostChip = focusedChip();
    element.alternatives.replaceChildren(...chips);
  } catch (error) { complain(error); }
  // Unless the focus has moved on in the meantime.
  if (lostChip >= 0 && document.activeElement === document.body) focusNear([...element.alternatives.querySelectorAll("button")], lostChip);
  lostChip = -1;
}

/**
 * A button for each of the most likely pieces at a position; the translation goes on from the one that is taken.
 * @param {number} step @param {Translation} intact
 */
export async function alternativesAt(step, intact) {
  const asked = alternativesOf.get(intact) ?? latest("alternatives", async (signal) => {
    const question = { run: subject.run, text: subject.source, target_ids: intact.ids, number: 6 };
    return (await engine.alternatives(question, signal)).alternatives;
  });
  alternativesOf.set(intact, asked);
  let choices;
  try { choices = (await asked)[step] ?? []; } catch (error) {
    alternativesOf.delete(intact); // it can be asked again
    throw error;
  }
  return choices.map(({ piece, id, log_prob }) => {
    const taken = button(`${piece.replaceAll("\u2581", "␣")} `, () => {
      askAgain(beginWith([...intact.ids.slice(0, step), id], intact.ids));
    });
    taken.append(make("span", {}, `${decimal(100 * Math.exp(log_prob), 1)} %`));
    taken.disabled = id < 4 || intact.ids[step] === id;
    taken.title = label("taken");
    taken.style.setProperty("--share", `${(100 * Math.exp(log_prob)).toFixed(0)}%`);
    return taken;
  });
}

// The answers about a translation, by place and row.
/** @type {WeakMap<Translation, Map<string, import("../engine/interface.js").Cells>>} */
const rowsOf = new WeakMap();
// The pieces of the selected words that are explained; a later selection begins with the first ones.
let rowPiece = -1, columnPiece = -1;
let turn = 0;

/**
 * Explains how the row of a selected piece is computed, above all the score of the selected column (by default, the
 * column with the largest weight).
 * @param {LabMap | null} map @param {number[] | null} steps @param {[number, number] | null} span of the selected column
 * @param {Translation | null} intact
 */
async function drawExplanation(map, steps, span, intact) {
  const mine = ++turn;
  element.explanation.hidden = steps === null;
  if (!map || !intact || !steps || !element.explanation.open) return;
  const isMean = state.layer === MEAN || state.head === MEAN;
  element["of-mean"].hidden = !isMean;
  element.explained.hidden = isMean;
  if (isMean) { offerHead(map, steps, span); return; }
  const row = steps.includes(rowPiece) ? rowPiece : steps[0], column = !span ? null : columnPiece >= span[0] && columnPiece < span[1] ? columnPiece : span[0];
  const explain = () => { drawExplanation(map, steps, span, intact); };
  const pieces = state.site === "encoder_self" ? intact.maps.encoder_self.outputs : intact.pieces;
  element["row-pieces"].hidden = steps.length < 2;
  element["row-pieces"].replaceChildren(...steps.map((step) => {
    const item = button(pieces[step], () => {
      rowPiece = step;
      explain();
      focusNear([...element["row-pieces"].querySelectorAll("button")], steps.indexOf(step));
    });
    item.setAttribute("aria-pressed", String(step === row));
    return item;
  }));
  /** @param {number} key */
  const choose = (key) => {
    columnPiece = key;
    const inWord = map.columnSpans.findIndex(([start, end]) => start <= key && key < end);
    if (inWord === state.column) explain();
    else { state.column = inWord; redraw(); }
  };
  try {
    const place = selectedPlace(), key = JSON.stringify([place, row]), answers = rowsOf.get(intact) ?? new Map();
    rowsOf.set(intact, answers);
    if (!answers.has(key)) {
      const question = { run: subject.run, text: subject.source, target_ids: intact.ids, ...place, row };
      answers.set(key, await latest("explain", (signal) => engine.explain(question, signal)));
    }
    const cells = answers.get(key);
    if (mine !== turn || !element.explanation.checkVisibility()) return; // a later selection
    drawNumbers(cells, drawCell(cells, pieces[row], column, choose));
  } catch (error) { complain(error); }
}

/** A mean has no equation of its own: offers the head that looks most at the selected column. @param {LabMap} map @param {number[]} steps @param {[number, number] | null} span */
function offerHead(map, steps, span) {
  const heads = map.rowsOf(steps[0]).map(({ layer, head, weights }) => ({ layer, head, weight: span ? weights.slice(...span).reduce((sum, weight) => sum + weight, 0) : Math.max(...weights) }));
  const { layer, head } = heads.reduce((best, one) => one.weight > best.weight ? one : best);
  const offer = button(label("explainHead", layer, head), () => {
    Object.assign(state, { layer, head });
    part(element.explanation, "summary").focus({ preventScroll: true }); // this button disappears
    redraw();
  });
  element["of-mean"].replaceChildren(label("ofMean", heads.length), " ", offer);
}

/** @param {import("../engine/interface.js").Cells} cells @param {number} shown the key that is drawn */
function drawNumbers(cells, shown) {
  const { log_prior: prior } = cells;
  const heads = ["", label("weights"), label("score"), label("allowed"), ...prior ? ["log g"] : [], label("key"), label("value")];
  fillTable(element.numbers, [heads, ...cells.columns.slice(0, cells.keys.length).map((piece, i) => [
    piece, decimal(cells.weights[i], 4), written(cells.scores[i], 3), label(cells.allowed[i] ? "yes" : "no"),
    ...prior ? [written(prior[i], 3)] : [], numbers(cells.keys[i]), numbers(cells.values[i]),
  ])]);
  element.numbers.rows[shown + 1].classList.add("shown");
}
