// @ts-check
// A map as a heat map: rows are the target, columns the source.

import { colorOf, colorOfDifference, css } from "./colors.js";
import { clamp, hit, stillness } from "./dom.js";
import { listen, magnified, marked, measured, picture, replace, short, svg, widthOf } from "./draw.js";
import { decimal, localized } from "./language.js";
import { sameLabels } from "./words.js";

/** @typedef {import("./draw.js").Cell} Cell */
/** @typedef {import("./map.js").AttentionMap} AttentionMap */
/**
 * @typedef {object} Layout sizes and positions in pixels, and the labels as far as there is room
 * @property {number} cell the height of a cell
 * @property {number} across its width
 * @property {number} font
 * @property {string[]} rows
 * @property {string[]} columns
 * @property {number} left where the cells begin
 * @property {number} top
 * @property {number} width
 * @property {number} height
 * @property {boolean} [upright] whether the labels of the columns run straight up, which takes the least width
 * @property {number} [legend] where the color scale begins, if the drawing has one
 */
/**
 * @typedef {object} Look
 * @property {number} most the weight with the last color
 * @property {Cell | null} selection
 * @property {string} [name] what a screen reader says; without it, the drawing is skipped by the keyboard
 * @property {boolean} [signed] whether weights may be negative, as in a difference
 * @property {(cell: Cell) => void} [choose] called with the cell that is clicked or reached by the arrow keys
 * @property {(row: number, column: number) => string} [tip]
 * @property {(cell: { row: number, column: number, weight: number, done: boolean }) => void} [drag]
 *   called while a cell is dragged up or down, and with `done` when it is released
 */

const GAP = 1, DRAG_PIXELS = 120, LEGEND = 24, LONGEST_LABEL = 130, MOST_CELL = 56, LEAST_CELL = 20, LEAST_ACROSS = 18, LEAST_UPRIGHT = 15;
// Where drawings are magnified, a cell that is as high as its letters is still large enough to be hit.
const LEAST_MAGNIFIED = 15;
const leastCell = () => magnified() > 1 ? LEAST_MAGNIFIED : LEAST_CELL;
const WIDEST = 2; // a cell, as a multiple of its height

/** How far the last labels, which are slanted, end to the right of the cells. @param {number[]} widths @param {number} cell */
const beyond = (widths, cell) => Math.max(...widths.map((width, i) => width * Math.SQRT1_2 - (widths.length - i - 0.5) * cell), 0);

/** How high the labels of the columns are. @param {Pick<AttentionMap, "columns">} map @param {boolean} upright */
const heightOfLabels = ({ columns }, upright) => Math.ceil(Math.max(...columns.map((text) => widthOf(text)), 34) * (upright ? 1 : Math.SQRT1_2)) + (upright ? 0 : 10);

/** The size of a layout with a legend. @param {Pick<AttentionMap, "rows" | "columns">} map @param {Pick<Layout, "cell" | "across" | "left" | "top" | "upright">} cells */
function annotatedSize({ rows, columns }, { cell, across, left, top, upright }) {
  const bottom = top + cell * rows.length, over = upright ? 2 : beyond(columns.map((text) => widthOf(text)), across);
  return { cell, across, left, top, upright, width: left + Math.max(across * columns.length + Math.ceil(over), 160), height: bottom + LEGEND, legend: bottom + 10 };
}

/**
 * The layout with the names of the axes and a legend. All of it is in the window if its cells remain large enough to
 * be read and hit. A place below the first window gets a window of its own.
 * @param {HTMLElement} container @param {AttentionMap} map
 * @param {number} [below] the height of what must be in the window below the drawing @returns {Layout}
 */
export function annotatedLayout(container, { rows, columns }, below = 0) {
  const widths = columns.map((text) => widthOf(text));
  const left = Math.max(...rows.map((text) => widthOf(text)), 62);
  const wide = (/** @type {HTMLElement} */ (container.parentElement).clientWidth - 6) / magnified() - left;
  const fitsSlanted = (/** @type {number} */ across) => across * columns.length + beyond(widths, across) <= wide;
  const upright = !fitsSlanted(LEAST_ACROSS) && LEAST_UPRIGHT * columns.length <= wide;
  const fits = upright ? (/** @type {number} */ across) => across * columns.length <= wide : fitsSlanted;
  const top = heightOfLabels({ columns }, upright);
  const above = container.getBoundingClientRect().top + scrollY;
  const high = (innerHeight - below - (above < innerHeight / 2 ? above : 0)) / magnified() - top - LEGEND - 24;
  let cell = clamp(Math.floor(high / rows.length), MOST_CELL, leastCell());
  while (cell > leastCell() && !fits(cell)) cell--;
  const leastAcross = upright ? LEAST_UPRIGHT : LEAST_ACROSS;
  let across = Math.max(cell, leastAcross);
  while (across > leastAcross && !fits(across)) across--;
  while (across < cell * WIDEST && fits(across + 1)) across++;
  return {
    font: 13, rows: rows.map((text) => short(text)), columns: columns.map((text) => short(text)), ...annotatedSize({ rows, columns }, { cell, across, left, top, upright }),
  };
}

/** The width in which a map needs no scrolling if its cells have the least height and are at least as wide. @param {AttentionMap} map */
export function leastWidth({ rows, columns }) {
  const across = Math.max(leastCell(), LEAST_ACROSS);
  const left = Math.max(...rows.map((text) => widthOf(text)), 62), over = beyond(columns.map((text) => widthOf(text)), across);
  return magnified() * (left + across * columns.length + over) + 6;
}

/**
 * Layouts with the same cells, so that the rows of maps side by side are at the same heights.
 * @param {{ map: AttentionMap, layout: Layout }[]} several @returns {Layout[]}
 */
export function alignedLayouts(several) {
  const least = (/** @type {"cell" | "across" | "left"} */ key, /** @type {(...numbers: number[]) => number} */ of) => of(...several.map(({ layout }) => layout[key]));
  const cell = least("cell", Math.min), across = least("across", Math.min), left = least("left", Math.max);
  const upright = several.some(({ layout }) => layout.upright), top = Math.max(...several.map(({ map }) => heightOfLabels(map, upright)));
  return several.map(({ map, layout }) => ({ ...layout, ...annotatedSize(map, { cell, across, left, top, upright }) }));
}

/**
 * The layout without names and legend. Cells are as large as the width allows, but never too small to read.
 * @param {HTMLElement} container @param {AttentionMap} map @returns {Layout}
 */
export function bareLayout(container, { rows, columns }) {
  const room = container.clientWidth;
  const guess = Math.max(...rows.map((text) => measured(text, 14)), 20);
  const cell = clamp(Math.floor((room - Math.min(guess, LONGEST_LABEL) - 46) / columns.length), 34, 15);
  const font = clamp(Math.round(cell * 0.62), 14, 11);
  const clipped = (/** @type {string} */ text) => {
    const characters = [...text];
    let end = characters.length;
    const cut = () => end < characters.length ? `${characters.slice(0, end).join("")}…` : text;
    while (end > 1 && measured(cut(), font) > LONGEST_LABEL) end--;
    return cut();
  };
  const shown = { rows: rows.map(clipped), columns: columns.map(clipped) };
  const widths = shown.columns.map((text) => measured(text, font));
  const left = Math.ceil(Math.max(...shown.rows.map((text) => measured(text, font)))) + 9;
  const top = Math.ceil(Math.max(...widths) * Math.SQRT1_2 + font);
  const over = Math.max(...widths.map((width, i) => (width + font) * Math.SQRT1_2 - (columns.length - i - 0.5) * cell), 2);
  return { cell, across: cell, font, ...shown, left, top, width: left + cell * columns.length + Math.ceil(over), height: top + cell * rows.length + 3 };
}

/**
 * What changes in a drawing without drawing everything again: the selection, or all weights.
 * @typedef {{ select: (selection: Cell | null) => void, repaint: (weights: number[][], most: number) => void }} Drawing
 */

/**
 * @param {HTMLElement} container @param {AttentionMap} map @param {Layout} layout @param {Look} look
 * @returns {Drawing}
 */
export function drawHeatMap(container, map, layout, { most, selection, name, signed = false, choose, tip, drag }) {
  const { cell, across, font, left, top, upright } = layout;
  const wide = across * map.columns.length, high = cell * map.rows.length;
  const root = picture(layout.width, layout.height, name);
  if (font !== 13) root.style.fontSize = `${font}px`;
  const paint = (/** @type {number} */ weight, largest = most) => css((signed ? colorOfDifference : colorOf)(largest > 0 ? weight / largest : 0));
  /** @type {SVGElement[]} */
  const cells = [];
  root.append(svg("rect", { class: "grid", fill: "#ddd", x: left - GAP, y: top - GAP, width: wide + GAP, height: high + GAP }));
  if (map.names) {
    root.append(...[`${map.names[1]} →`, `${map.names[0]} ↓`].map((text, i) => svg("text", { class: "axis", x: left - 8, y: top - 24 + 17 * i, "text-anchor": "end" }, text)));
  }
  // The whole strip of a label can be hit, not only its letters.
  const label = (/** @type {string} */ text, /** @type {string} */ full, /** @type {object} */ data, /** @type {object} */ at, /** @type {object} */ strip) => root.append(
    svg("rect", { class: "hit", fill: "none", ...data, ...strip }),
    svg("text", { class: "label", ...data, ...at }, ...marked(text), svg("title", {}, full)),
  );
  const below = font * 0.35; // from the middle of a line to its baseline
  layout.columns.forEach((text, column) => {
    const transform = `translate(${left + (column + 0.5) * across + (upright ? below : below / 2)} ${top - 5}) rotate(${upright ? -90 : -45})`;
    label(text, map.columns[column], { "data-column": column }, { transform }, { transform, x: 0, y: -0.75 * font, width: upright ? top : top * Math.SQRT2, height: font });
  });
  layout.rows.forEach((text, row) => {
    const y = top + row * cell;
    label(text, map.rows[row], { "data-row": row }, { x: left - 8, y: y + cell / 2 + below, "text-anchor": "end" }, { x: 0, y, width: left, height: cell });
    map.columns.forEach((_, column) => {
      const x = left + column * across, blocked = map.isBlocked?.(row, column) ?? false;
      cells.push(root.appendChild(svg("rect", {
        class: blocked ? "cell blocked" : "cell", x, y, width: across - GAP, height: cell - GAP,
        fill: paint(map.weights[row][column]), "data-row": row, "data-column": column, ...tip ? { "data-tip": tip(row, column) } : {},
      })));
      if (blocked) root.append(svg("path", { class: "cross", d: `M${x + 4} ${y + cell - 5}L${x + across - 5} ${y + 4}` }));
    });
    const center = map.centers?.[row];
    for (const [kind, width] of /** @type {[string, number][]} */ (center == null ? [] : [["halo", 5], ["center-line", 2]])) {
      root.append(svg("rect", { class: kind, x: left + (/** @type {number} */ (center) + 0.5) * across - width / 2, y, width, height: cell - GAP }));
    }
  });
  if (layout.legend) root.append(...legend(left, layout.legend, most, signed, paint));
  const select = (/** @type {Cell | null} */ chosen) => mark(root, map, layout, chosen);
  select(selection);
  if (choose) listen(root, map, selection, choose);
  if (tip) root.addEventListener("pointerover", (event) => { giveTip(hit(event, ".cell")); });
  if (drag) listenToDrag(root, map, drag);
  const before = drawn.get(/** @type {Element} */ (container.firstElementChild));
  drawn.set(root, { map, cells });
  replace(container, root);
  if (before) grow(before, { map, cells });
  return {
    select,
    repaint(weights, largest) {
      weights.flat().forEach((weight, i) => cells[i].setAttribute("fill", paint(weight, largest)));
      drawn.set(root, { map: { ...map, weights }, cells });
    },
  };
}

/** Lets a cell say its weight; a tip in each of the hundreds of cells would take as long to draw as the cells. @param {Element | null} cell */
export function giveTip(cell) {
  const tip = cell?.getAttribute("data-tip");
  if (tip && !cell?.firstChild) cell?.append(svg("title", {}, tip));
}

/** @typedef {{ map: AttentionMap, cells: SVGElement[] }} Drawn */
/** What drawings show. @type {WeakMap<Element, Drawn>} */
const drawn = new WeakMap();
const MOVES = 0.02, MILLISECONDS = 320;

/** Lets the eye follow a change: colors fade, and cells that gain weight grow, if rows and columns are the same as before. @param {Drawn} before @param {Drawn} after */
function grow(before, after) {
  if (stillness.matches || !sameLabels(before.map.rows, after.map.rows) || !sameLabels(before.map.columns, after.map.columns)) return;
  const was = before.map.weights.flat();
  after.map.weights.flat().forEach((weight, i) => {
    const change = weight - was[i], cell = after.cells[i];
    if (Math.abs(change) < MOVES) return;
    const small = `scale(${Math.sqrt(clamp(was[i] / weight, 1, 0.1)).toFixed(2)})`;
    cell.animate([{ fill: before.cells[i].getAttribute("fill") ?? "", ...change > 0 ? { transform: small } : {} }, {}], { duration: MILLISECONDS, easing: "ease-out" });
  });
}

/**
 * The color scale: from 0 to the largest weight on the page or, for a difference, from minus to plus its largest absolute value.
 * @param {number} x @param {number} y @param {number} most @param {boolean} signed @param {(weight: number) => string} paint
 */
function legend(x, y, most, signed, paint) {
  const steps = 24, from = signed ? -most : 0, width = 100 / steps;
  const shown = (/** @type {number} */ value) => (most < 0.1 && value ? localized(value.toPrecision(2)) : decimal(value, 2)).replace("-", "−");
  return [
    svg("text", { class: "axis", x: x - 6, y: y + 10, "text-anchor": "end" }, shown(from)),
    ...[...Array(steps).keys()].map((step) => svg("rect", {
      x: x + step * width, y, width: width + 0.5, height: 10, fill: paint(from + (most - from) * step / (steps - 1)),
    })),
    svg("text", { class: "axis", x: x + 106, y: y + 10 }, shown(most)),
  ];
}

/**
 * Outlines the selected row or column and the selected cell, and marks their labels.
 * @param {SVGElement} root @param {AttentionMap} map @param {Layout} layout @param {Cell | null} selection
 */
function mark(root, map, { left, top, cell, across }, selection) {
  const { row, column } = selection ?? { row: null, column: null };
  for (const old of root.querySelectorAll(".outline, .cursor")) old.remove();
  for (const label of /** @type {NodeListOf<SVGElement>} */ (root.querySelectorAll(".label"))) {
    label.classList.toggle("chosen", label.dataset.row === String(row) || label.dataset.column === String(column));
  }
  const box = (/** @type {string} */ kind, /** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ columns, /** @type {number} */ rows) => root.append(svg("rect", {
    class: kind, x: left + x * across - 1, y: top + y * cell - 1, width: across * columns + 1, height: cell * rows + 1,
  }));
  const hasColumn = column !== null && column < map.columns.length;
  if (row !== null && row < map.rows.length) {
    box("outline", 0, row, map.columns.length, 1);
    if (hasColumn) box("cursor", column, row, 1, 1);
  } else if (hasColumn) box("outline", column, 0, 1, map.rows.length);
}

/**
 * Dragging a cell up raises its weight, and dragging it down lowers it. A touch scrolls instead.
 * @param {SVGElement} root @param {AttentionMap} map @param {NonNullable<Look["drag"]>} drag
 */
function listenToDrag(root, map, drag) {
  /** @type {{ cell: HTMLElement, row: number, column: number, y: number, weight: number | null } | null} */
  let held = null;
  const number = root.appendChild(svg("text", { class: "dragged" }));
  root.addEventListener("pointerdown", (event) => {
    const cell = hit(event, ".cell:not(.blocked)");
    if (event.pointerType === "touch" || event.button !== 0 || !cell) return;
    held = { cell, row: Number(cell.dataset.row), column: Number(cell.dataset.column), y: event.clientY, weight: null };
    root.setPointerCapture(event.pointerId);
  });
  root.addEventListener("pointermove", (event) => {
    if (!held || (held.weight === null && Math.abs(event.clientY - held.y) < 4)) return;
    const { cell, row, column } = held;
    held.weight = clamp(map.weights[row][column] + (held.y - event.clientY) / DRAG_PIXELS, 1);
    number.textContent = decimal(held.weight, 2);
    number.setAttribute("x", String(Number(cell.getAttribute("x")) + 4));
    number.setAttribute("y", String(Number(cell.getAttribute("y")) - 4));
    drag({ row, column, weight: held.weight, done: false });
  });
  root.addEventListener("pointercancel", () => {
    if (held && held.weight !== null) drag({ row: held.row, column: held.column, weight: map.weights[held.row][held.column], done: false });
    held = null;
  });
  root.addEventListener("pointerup", () => {
    const released = held;
    held = null;
    if (!released) return;
    const { cell, row, column, weight } = released;
    if (weight !== null) drag({ row, column, weight, done: true });
    // The pointer was captured, so the root receives the click that follows.
    else cell.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  });
}
