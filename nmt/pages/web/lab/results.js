// @ts-check
// The maps of the answers: drawing them, selecting their cells, and changing weights.

import { element, part } from "../dom.js";
import { magnified } from "../draw.js";
import { alignedLayouts, annotatedLayout, drawHeatMap, leastWidth } from "../heat_map.js";
import { label } from "../i18n.js";
import { decimal } from "../language.js";
import { drawLines } from "../lines.js";
import { differenceOf, reweighted } from "../map.js";
import { answers, headsShown, mapOfSecond, mostOf, piecesOf, shownMap, shownMaps } from "./answers.js";
import { drawHeads, isStrip, isWide } from "./heads.js";
import { setShown } from "./hover.js";
import { drawInspector, setWeight } from "./inspector.js";
import { tipOf } from "./maps.js";
import { isPresenting } from "./presentation.js";
import { askAgain } from "./signals.js";
import { isTouched, state, writeAddress } from "./state.js";
import { hideLater } from "./steps.js";
import { withTerms } from "./terms.js";
import { leaveMenu } from "./translation.js";

/** @typedef {import("./maps.js").LabMap} LabMap */
/** @typedef {import("../draw.js").Cell} Cell */
/** @typedef {HTMLElement} Section with a heading, a verdict and a map */

/** The labels that say what a map of a site shows: beside all heads, and above maps whose headings need the room. @type {Record<string, [string, string]>} */
const LEGENDS = { cross: ["legend", "legendShort"], encoder_self: ["legendOfSource", "legendOfSourceShort"], decoder_self: ["legendOfRead", "legendOfReadShort"] };

/** The drawing of the translation's map. @type {import("../heat_map.js").Drawing | null} */
let intactDrawing = null;

export function showLegend() { element.legend.textContent = label(LEGENDS[state.site][element.results.classList.contains("whole-width") ? 1 : 0]); }

/** @param {Section} section @param {string} text */
export function showVerdict(section, text) {
  part(section, ".verdict").replaceChildren(...withTerms(text));
}

/** Whether a result can be seen: a presentation shows fewer. To ask the browser would make it compute all styles. @param {string} name */
const isShown = (name) => !element[name].hidden && !(isPresenting() && element[name].classList.contains("not-presented"));

// Whether the page shows the map of an unfinished translation, which must not be drawn over.
let isGrowing = false;

/** @param {boolean} isUnfinished */
export function setGrowing(isUnfinished) { isGrowing = isUnfinished; }

/** @param {boolean} isAllowed */
export function allowSaving(isAllowed) {
  for (const item of element["save-menu"].querySelectorAll("button")) item.disabled = !isAllowed;
}

/** Draws all maps of weights with one color scale. The tables of all heads do not depend on the selected cell. */
export function draw({ withHeads = true } = {}) {
  if (isGrowing) return;
  const maps = shownMaps(), most = mostOf(maps);
  if (answers.intact && !maps[state.of]) Object.assign(state, { row: null, column: null, of: "intact" }); // its map is gone
  for (const [name, map] of Object.entries(maps)) element[name].hidden = !map;
  const minus = differenceShown(maps.intact);
  setAside();
  // Set the layout first, because the width of a section determines the size of its cells.
  element.results.classList.toggle("whole-width", [maps.changed, maps.other, minus].some(Boolean) || (maps.intact !== null && isWide(maps.intact, headsShown())));
  showLegend();
  /** @type {[string, import("../map.js").AttentionMap][]} */
  const shown = Object.entries({ ...maps, minus }).flatMap(([name, map]) => map && isShown(name) ? [[name, map]] : []);
  element.results.style.setProperty("--columns", String(columnsFor(shown.map(([, map]) => map))));
  if (withHeads) drawHeads(headsShown());
  const strip = isStrip() ? element.heads.offsetHeight : 0, below = strip && strip + VERDICT_ROOM;
  document.documentElement.style.setProperty("--strip", `${strip}px`);
  document.documentElement.style.setProperty("--above", `${element.bench.offsetTop}px`);
  const layouts = alignedLayouts(shown.map(([name, map]) => ({ map, layout: annotatedLayout(part(element[name], ".map"), map, below) })));
  shown.forEach(([name], i) => {
    const map = maps[name];
    const choose = (/** @type {Cell} */ cell) => {
      leaveMenu(cell.row);
      select(cell, name);
    };
    if (map) drawMap(element[name], map, most, state.of === name ? selection() : null, choose, layouts[i], name === "intact" ? drag : undefined);
  });
  if (minus && isShown("minus")) {
    drawHeatMap(part(element.minus, ".map"), minus, layouts[layouts.length - 1], {
      most: minus.most, selection: state.of === "intact" ? selection() : null, name: element["minus-name"].textContent ?? "",
      choose: (cell) => select(cell, "intact"), signed: true, tip: tipOf(minus),
    });
  }
  for (const [name] of shown) part(element[name], ".map").style.height = "";
  setShown(Object.fromEntries(shown.map(([name, map]) => [name, { map, pieces: piecesOf(name) }])));
  hideLater(maps.intact);
  allowSaving(answers.intact !== null);
  inspect();
}

/** Takes the old drawings out of the layout, which measuring would otherwise compute for each of their cells; their room stays. */
function setAside() {
  for (const section of ["intact", "changed", "other", "minus"]) {
    const container = part(element[section], ".map"), old = container.firstElementChild;
    if (element[section].hidden) container.replaceChildren();
    else if (old instanceof SVGElement) {
      container.style.height = `${old.getAttribute("height")}px`;
      old.style.display = "none";
    }
  }
}

const GAP = 28; // between results, as in lab.css
const VERDICT_ROOM = 10; // for the line below a map
const ENOUGH = 320, ENOUGH_MAGNIFIED = 240; // in which a wide map is scrolled: pixels, and units of a magnified drawing

/** How many results are side by side: all of them if their maps have room, and else rows of the same length. @param {import("../map.js").AttentionMap[]} maps */
function columnsFor(maps) {
  const results = [...element.results.querySelectorAll(".result:not([hidden])")].filter(({ id }) => isShown(id)).length;
  const enough = isPresenting() ? ENOUGH_MAGNIFIED * magnified() : ENOUGH;
  const room = Math.floor((element.maps.clientWidth - 32 + GAP) / (Math.min(Math.max(...maps.map(leastWidth), 1), enough) + GAP));
  return Math.ceil(results / Math.ceil(results / Math.max(room, 1)));
}

/**
 * @param {Section} section @param {LabMap} map @param {number} most @param {Cell | null} selected
 * @param {(cell: Cell) => void} choose @param {import("../heat_map.js").Layout} layout @param {import("../heat_map.js").Look["drag"]} [dragged]
 */
export function drawMap(section, map, most, selected, choose, layout, dragged) {
  const container = part(section, ".map"), name = `${part(section, "h2").textContent}: ${label(state.site)}`;
  const look = { most, selection: selected, name, choose, drag: dragged, tip: tipOf(map) };
  /** @type {import("../heat_map.js").Drawing | null} */
  let drawing = null;
  if (state.view === "lines") drawLines(container, map, look);
  else drawing = drawHeatMap(container, map, layout, look);
  if (section === element.intact) intactDrawing = drawing;
}

/** The difference between two maps with the same rows: after and before a change, or of two runs for one translation. @param {LabMap | null} first */
function differenceShown(first) {
  const { intact, forced, reading } = answers, compared = forced ?? reading;
  element["difference-box"].hidden = !compared;
  element.minus.hidden = !compared || !state.difference || !first;
  if (element.minus.hidden || !intact) return null;
  const [one, two] = forced ? [shownMap(forced), first] : [first, mapOfSecond(reading)];
  const names = forced ? [label("yourChange"), label("original")] : [state.run, state.second];
  const difference = differenceOf(one, two);
  element["minus-name"].textContent = label("minus", ...names);
  showVerdict(element.minus, difference ? label("minusHint", ...names, intact.text || label("wroteNothing")) : label(state.unit === "words" ? "otherTexts" : "otherWords"));
  if (!difference) part(element.minus, ".map").replaceChildren();
  return difference;
}

// ---------------------------------------------------------------- choosing

const selection = () => state.row === null && state.column === null ? null : { row: state.row, column: state.column };

/** @param {Cell} cell @param {string} of the map that contains it */
export function select({ row, column }, of) {
  Object.assign(state, { row, column, of });
  draw({ withHeads: false });
  writeAddress();
}

export function inspect() {
  element.tries.hidden = !answers.intact;
  element.tries.classList.toggle("small", isTouched());
  element["start-over"].hidden = !isTouched();
  drawInspector(shownMaps()[state.of], shownMap(answers.forced), answers.intact);
}

/** @type {NonNullable<import("../heat_map.js").Look["drag"]>} */
function drag({ row, column, weight, done }) {
  Object.assign(state, { row, column, of: "intact" });
  element.weight.value = weight.toFixed(2);
  if (done) weigh(weight);
  else preview(weight);
}

/** Shows approximately which weights the selected row will have, before the model translates with them. @param {number} weight */
export function preview(weight) {
  element["weight-value"].textContent = decimal(weight, 2);
  const map = shownMap(answers.intact), now = shownMap(answers.forced ?? answers.intact), { row, column, of } = state;
  if (!map || !now || row === null || column === null || of !== "intact" || now.isBlocked(row, column)) return;
  for (const old of element.intact.querySelectorAll(".readout")) old.remove(); // the weight that the cell had
  intactDrawing?.repaint(map.weights.map((line, r) => r === row ? reweighted(now.weights[r], [column], weight, line, line.map((_, c) => now.isBlocked(r, c) ? 0 : 1)) : line), mostOf(shownMaps()));
}

/** Gives the selected cell this weight. @param {number} weight */
export function weigh(weight) {
  const map = shownMap(answers.forced ?? answers.intact), intact = shownMap(answers.intact), { row, column } = state;
  if (!map || !intact || state.of !== "intact" || row === null || column === null || map.isBlocked(row, column)) return;
  setWeight(map, row, column, weight, intact);
  askAgain();
}
