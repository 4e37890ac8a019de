// @ts-check
// Drawings as SVG, and what heat maps and line drawings have in common: labels, and selecting a cell.

import { ARROWS, clamp, filled, hasModifier, hit } from "./dom.js";
import { splitMark } from "./words.js";

/** @typedef {{ row: number | null, column: number | null }} Cell the selected row, column or both */

const NAMESPACE = "http://www.w3.org/2000/svg";

/**
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag @param {import("./dom.js").Attributes} attributes @param {(Node | string)[]} children
 */
export const svg = (tag, attributes = {}, ...children) => filled(document.createElementNS(NAMESPACE, tag), attributes, children);

let magnification = 1;

/** How many pixels a unit of a drawing has. */
export const magnified = () => magnification;

/** Makes drawings larger from now on, with their letters. @param {number} factor */
export function magnify(factor) { magnification = factor; }

/** A drawing. One with a name can be reached by the keyboard. @param {number} width @param {number} height @param {string} [name] */
export const picture = (width, height, name) => svg("svg", {
  width: width * magnification, height: height * magnification, viewBox: `0 0 ${width} ${height}`, ...name ? { role: "application", tabindex: 0, "aria-label": name } : {}, xmlns: NAMESPACE,
});

/** A curve from one side to the other, as a path. @param {number} x @param {number} y @param {number} toX @param {number} toY */
export const curve = (x, y, toX, toY) => `M${x} ${y}C${(x + toX) / 2} ${y} ${(x + toX) / 2} ${toY} ${toX} ${toY}`;

/** @param {string} text */
export const short = (text, most = 18) => [...text].length > most ? `${[...text].slice(0, most - 1).join("")}…` : text;

/** The sign of a new word is an element of its own, so that a style sheet can make it pale. @param {string} text */
export function marked(text) {
  const [mark, rest] = splitMark(text);
  return mark ? [svg("tspan", { class: "mark" }, mark), rest] : [rest];
}

const ruler = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));

/** The width of a text in pixels. @param {string} text @param {number} size @param {number} weight */
export function measured(text, size, weight = 400) {
  ruler.font = `${weight} ${size}px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", Arial, sans-serif`;
  return ruler.measureText(text).width;
}

/** The room for a label, which may become bold. @param {string} text @param {number} [most] letters */
export const widthOf = (text, most) => Math.ceil(measured(short(text, most), 13, 650)) + 12;

/** The cell that an event is about; null outside all labels and cells. @param {Event} event @returns {Cell | null} */
export function cellOf(event) {
  const { row, column } = hit(event, "[data-row],[data-column]")?.dataset ?? {};
  const number = (/** @type {string | undefined} */ text) => text === undefined ? null : Number(text);
  return row === undefined && column === undefined ? null : { row: number(row), column: number(column) };
}

/**
 * Every element with data-row or data-column can be clicked; the arrow keys move from cell to cell.
 * @param {SVGElement} root @param {import("./map.js").AttentionMap} map @param {Cell | null} selection
 * @param {(cell: Cell) => void} choose
 */
export function listen(root, map, selection, choose) {
  root.addEventListener("click", (event) => {
    const cell = cellOf(event);
    if (cell) choose(cell);
  });
  root.addEventListener("keydown", (event) => {
    const move = ARROWS[event.key];
    if (!move || hasModifier(event)) return;
    event.preventDefault();
    // The first key selects the first cell of a row or column that is not selected yet.
    const to = (/** @type {number | null | undefined} */ from, /** @type {number} */ by, /** @type {number} */ most) => from === null || from === undefined ? 0 : clamp(from + by, most);
    choose({ row: to(selection?.row, move[0], map.rows.length - 1), column: to(selection?.column, move[1], map.columns.length - 1) });
  });
}

// Browsers show the focus of a drawing that replaces a clicked one as if keys had been used.
for (const [kind, isPointer] of /** @type {[string, boolean][]} */ ([["pointerdown", true], ["keydown", false]])) {
  addEventListener(kind, () => { document.documentElement.classList.toggle("by-pointer", isPointer); }, { capture: true });
}

/** Puts a drawing into the page without losing the focus. @param {HTMLElement} container @param {SVGElement} root */
export function replace(container, root) {
  const focused = container.contains(document.activeElement);
  container.replaceChildren(root);
  if (focused) root.focus({ preventScroll: true });
}
