// Draws a map as lines between two lists of words: the source on the left, the target on the right.

import { listen, picture, replace, short, svg, widthOf } from "/page/svg.js";

const LINE = 26, MIDDLE = 190, TOP = 24;

// Takes the same arguments as drawHeat.
export function drawLines(place, map, { most, selection, name, choose }) {
  const left = Math.max(...map.columns.map((text) => widthOf(text))), right = Math.max(...map.rows.map((text) => widthOf(text)));
  const root = picture(left + MIDDLE + right, TOP + 8 + LINE * Math.max(map.rows.length, map.columns.length), name);
  const height = (index) => TOP + (index + 0.5) * LINE;
  const chosen = (row, column) => (selection?.row ?? null) === null || selection.row === row
    ? (selection?.column ?? null) === null || selection.column === column : false;
  const from = left + 4, to = left + MIDDLE - 4, middle = (from + to) / 2;
  map.rows.forEach((text, row) => map.columns.forEach((source, column) => {
    const share = Math.min(map.weights[row][column] / most, 1);
    if (!(share > 0.01) || map.isBlocked(row, column)) return;
    const strength = chosen(row, column) ? share : 0.12 * share;
    root.append(svg("path", {
      d: `M${from} ${height(column)}C${middle} ${height(column)} ${middle} ${height(row)} ${to} ${height(row)}`,
      "stroke-opacity": (0.08 + 0.92 * strength).toFixed(2), "stroke-width": (0.5 + 4.5 * strength).toFixed(2),
      "data-row": row, "data-column": column,
    }, svg("title", {}, `${text} → ${source}: ${map.weights[row][column].toFixed(3)}`)));
  }));
  const label = (text, x, y, anchor, picked, data) => root.append(svg("text", {
    class: picked ? "label chosen" : "label", x, y: y + 4, "text-anchor": anchor, ...data,
  }, short(text), svg("title", {}, text)));
  map.columns.forEach((text, column) => label(text, left - 4, height(column), "end", selection?.column === column, { "data-column": column }));
  map.rows.forEach((text, row) => label(text, left + MIDDLE + 4, height(row), "start", selection?.row === row, { "data-row": row }));
  root.append(
    svg("text", { class: "axis", x: left - 4, y: 12, "text-anchor": "end" }, map.names[1]),
    svg("text", { class: "axis", x: left + MIDDLE + 4, y: 12 }, map.names[0]),
  );
  listen(root, map, selection, choose);
  replace(place, root);
}
