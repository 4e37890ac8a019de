// @ts-check
// Pointing at a cell, a label or a word of a translation marks its row, its column and its word in every map at once.

import { inkOn } from "../colors.js";
import { element } from "../dom.js";
import { cellOf, svg } from "../draw.js";
import { decimal } from "../language.js";
import { spansOf } from "../words.js";
import { showEcho } from "./echo.js";
import { state } from "./state.js";

/** @typedef {import("../map.js").AttentionMap} AttentionMap */
/** @typedef {import("../draw.js").Cell} Cell */
/** A map, and for each row the number of the word that its piece belongs to. @typedef {{ map: AttentionMap, words: number[] }} MapOfWords */

// Where maps and words of translations are.
const places = [element.results, element.answer];
/** By the id of the map's section. @type {Record<string, MapOfWords>} */
let shown = {};
/** @type {(Cell & { of: string }) | null} */
let pointed = null;

/** The place of a label in another list: the same label at the same place, or else the nearest. @param {string[]} labels @param {number | null} index @param {string[]} others */
function placeIn(labels, index, others) {
  if (index === null) return null;
  const same = others.flatMap((text, at) => text === labels[index] ? [at] : []);
  return same.length ? same.reduce((best, at) => Math.abs(at - index) < Math.abs(best - index) ? at : best) : null;
}

/** @param {Record<string, { map: AttentionMap, pieces: string[] }>} maps each with the pieces of its translation */
export function setShown(maps) {
  shown = Object.fromEntries(Object.entries(maps).map(([name, { map, pieces }]) => {
    const spans = spansOf(pieces, "words");
    return [name, { map, words: map.rowSpans.map(([piece]) => spans.findIndex(([start, end]) => start <= piece && piece < end)) }];
  }));
  if (pointed && !shown[pointed.of]) pointed = null;
  light();
}

/** Marks what is pointed at or, if that is nothing, what is selected. */
function light() {
  const { row = null, column = null, of = "" } = pointed ?? (shown[state.of] ? { row: state.row, column: state.column, of: state.of } : {});
  const from = shown[of]?.map;
  for (const place of places) for (const old of place.querySelectorAll(".lit")) old.classList.remove("lit");
  for (const old of element.results.querySelectorAll(".readout")) old.remove();
  showEcho(of === "intact" ? from : undefined, row, column, shown.intact?.words);
  if (!from) return;
  for (const [name, one] of Object.entries(shown)) {
    const place = name === of ? { row, column } : { row: placeIn(from.rows, row, one.map.rows), column: placeIn(from.columns, column, one.map.columns) };
    const marks = [...place.row === null ? [] : [`[data-row="${place.row}"]`], ...place.column === null ? [] : [`[data-column="${place.column}"]`]];
    if (marks.length) for (const item of element[name].querySelectorAll(`.map :is(${marks})`)) item.classList.add("lit");
    if (pointed && place.row !== null && place.column !== null) readOut(element[name], one.map, place.row, place.column);
    if (place.row !== null && place.row < one.map.rows.length && state.site !== "encoder_self") {
      (name === "intact" ? element.answer : element[name]).querySelector(`[data-word="${one.words[place.row]}"]`)?.classList.add("lit");
    }
  }
}

/** Writes the weight of a cell into it. @param {HTMLElement} section @param {AttentionMap} map @param {number} row @param {number} column */
function readOut(section, map, row, column) {
  const cell = section.querySelector(`.map .cell[data-row="${row}"][data-column="${column}"]`), weight = map.weights[row]?.[column];
  if (!cell || weight === undefined) return;
  const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => Number(cell.getAttribute(name)));
  const fill = inkOn((cell.getAttribute("fill") ?? "").match(/\d+/g)?.map(Number) ?? [255, 255, 255]);
  const text = decimal(weight, 2).replace("-", "−"), item = svg("text", { class: "readout", x: x + width / 2, y: y + height / 2 + 3.5, "text-anchor": "middle" }, width < 25 ? text.replace(/0(?=[.,])/, "") : text);
  item.style.fill = fill; // the style sheet has another for text
  cell.parentElement?.append(item);
}

/** What an event points at: a cell or a label of a map, or a word of a translation. @param {Event} event */
function placeOf(event) {
  const target = /** @type {Element} */ (event.target), of = target.closest("#answer") ? "intact" : target.closest(".result")?.id ?? "", one = shown[of];
  if (!one) return null;
  const cell = target.closest(".map") ? cellOf(event) : null;
  if (cell) return { ...cell, of };
  const word = /** @type {HTMLElement | null} */ (target.closest("[data-word]"))?.dataset.word;
  if (word === undefined || state.site === "encoder_self") return null;
  const row = one.words.indexOf(Number(word));
  return row < 0 ? null : { row, column: null, of };
}

/** @param {typeof pointed} place */
function point(place) {
  if (place?.row === pointed?.row && place?.column === pointed?.column && place?.of === pointed?.of) return;
  pointed = place;
  light();
}

export function listenToHover() {
  // Not pointerover: the browser also sends it when the page moves under a pointer that rests, as after a drop.
  for (const type of /** @type {const} */ (["pointermove", "pointerdown"])) {
    document.addEventListener(type, (event) => {
      const place = placeOf(event);
      // A finger that touches another place leaves the marks where they are.
      if (!place && event.pointerType === "touch") return;
      point(place);
    });
  }
  document.documentElement.addEventListener("pointerleave", ({ pointerType }) => { if (pointerType !== "touch") point(null); });
  element.text.addEventListener("input", light);
}
