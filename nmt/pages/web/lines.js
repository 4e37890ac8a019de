// @ts-check
// A map as lines between two lists of words: the source on the left, the target on the right.

import { curve, listen, marked, picture, replace, short, svg, widthOf } from "./draw.js";

const LINE = 26, MIDDLE = 190, TOP = 24;

/**
 * Takes what `drawHeatMap` takes, except a layout.
 * @param {HTMLElement} container @param {import("./map.js").AttentionMap} map @param {import("./heat_map.js").Look} look
 */
export function drawLines(container, map, { most, selection, name, choose, tip }) {
  const left = Math.max(...map.columns.map((text) => widthOf(text))), right = Math.max(...map.rows.map((text) => widthOf(text)));
  const root = picture(left + MIDDLE + right, TOP + 8 + LINE * Math.max(map.rows.length, map.columns.length), name);
  const { row: chosenRow, column: chosenColumn } = selection ?? { row: null, column: null };
  const isChosen = (/** @type {number} */ row, /** @type {number} */ column) =>
    (chosenRow === null || chosenRow === row) && (chosenColumn === null || chosenColumn === column);
  const height = (/** @type {number} */ index) => TOP + (index + 0.5) * LINE;
  map.weights.forEach((weights, row) => weights.forEach((weight, column) => {
    const share = Math.min(weight / most, 1);
    if (!(share > 0.01) || map.isBlocked?.(row, column)) return;
    const strength = isChosen(row, column) ? share : 0.12 * share;
    root.append(svg("path", {
      d: curve(left + 4, height(column), left + MIDDLE - 4, height(row)), "data-row": row, "data-column": column,
      "stroke-opacity": (0.08 + 0.92 * strength).toFixed(2), "stroke-width": (0.5 + 4.5 * strength).toFixed(2),
    }, ...tip ? [svg("title", {}, tip(row, column))] : []));
  }));
  for (const { texts, axis, x, anchor, chosen, data } of [
    { texts: map.columns, axis: 1, x: left - 4, anchor: "end", chosen: chosenColumn, data: "data-column" },
    { texts: map.rows, axis: 0, x: left + MIDDLE + 4, anchor: "start", chosen: chosenRow, data: "data-row" },
  ]) {
    root.append(svg("text", { class: "axis", x, y: 12, "text-anchor": anchor }, map.names?.[axis] ?? ""), ...texts.map((text, i) => svg("text", {
      class: chosen === i ? "label chosen" : "label", x, y: height(i) + 4, "text-anchor": anchor, [data]: i,
    }, ...marked(short(text)), svg("title", {}, text))));
  }
  if (choose) listen(root, map, selection, choose);
  replace(container, root);
}
