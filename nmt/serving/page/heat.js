// A map as a heat map: rows are the target, columns the source.

import { colorOf, css, darkness } from "/page/colors.js";
import { listen, picture, replace, short, svg, widthOf } from "/page/svg.js";

const CELL = 28, GAP = 1, PIXELS = 120;

// A difference is white (dark: black) at 0, red (orange) where the first weight is larger, blue where the second is.
function colorOfDifference(share) {
  const [from, to] = darkness.matches ? [[20, 19, 26], share > 0 ? [254, 159, 109] : [120, 185, 255]]
    : [[255, 255, 255], share > 0 ? [178, 24, 43] : [33, 102, 172]];
  const part = Math.min(Math.abs(share), 1);
  return from.map((value, i) => Math.round(value + (to[i] - value) * part));
}

// `map` has rows, columns (labels) and weights (lists of numbers). `choose` gets {row, column}, one of which may be
// null; `drag`, if it is given, gets the new weight of a cell that was dragged up or down.
export function drawHeat(place, map, { most, selection, name, choose, drag, signed = false }) {
  const left = Math.max(...map.rows.map(widthOf)), slant = Math.max(...map.columns.map(widthOf)) * Math.SQRT1_2;
  const top = slant + 14;
  const root = picture(left + CELL * map.columns.length + slant, top + 4 + CELL * map.rows.length, name);
  const paint = (weight) => css((signed ? colorOfDifference : colorOf)(most > 0 ? weight / most : 0));
  root.append(svg("rect", { class: "grid", fill: "#ddd", x: left - GAP, y: top - GAP, width: CELL * map.columns.length + GAP, height: CELL * map.rows.length + GAP }));
  map.columns.forEach((text, column) => {
    const chosen = selection?.column === column ? "label chosen" : "label";
    const at = `translate(${left + (column + 0.6) * CELL} ${top - 6}) rotate(-45)`;
    root.append(svg("text", { class: chosen, transform: at, "data-column": column }, short(text), svg("title", {}, text)));
  });
  map.rows.forEach((text, row) => {
    const chosen = selection?.row === row ? "label chosen" : "label";
    const at = { x: left - 8, y: top + (row + 0.65) * CELL, "text-anchor": "end", "data-row": row };
    root.append(svg("text", { class: chosen, ...at }, short(text), svg("title", {}, text)));
    map.columns.forEach((source, column) => {
      const weight = map.weights[row][column];
      root.append(svg("rect", {
        class: "cell", x: left + column * CELL, y: top + row * CELL, width: CELL - GAP, height: CELL - GAP,
        fill: paint(weight), "data-row": row, "data-column": column,
      }, svg("title", {}, `${text} → ${source}: ${weight.toFixed(3)}`)));
    });
  });
  outline(root, map, selection, left, top);
  listen(root, map, selection, choose);
  if (drag) listenToDrag(root, map, drag, paint);
  replace(place, root);
}

function outline(root, map, selection, left, top) {
  const { row, column } = selection ?? { row: null, column: null };
  const hasRow = row !== null && row < map.rows.length, hasColumn = column !== null && column < map.columns.length;
  const box = (kind, x, y, columns, rows) => root.append(svg("rect", {
    class: kind, x: left + x * CELL - 1, y: top + y * CELL - 1, width: CELL * columns + 1, height: CELL * rows + 1,
  }));
  if (hasRow) box("outline", 0, row, map.columns.length, 1);
  if (hasRow && hasColumn) box("cursor", column, row, 1, 1);
  if (hasColumn && !hasRow) box("outline", column, 0, 1, map.rows.length);
}

// A cell dragged upwards gets more weight, one dragged downwards less; a finger scrolls instead.
function listenToDrag(root, map, drag, paint) {
  let held = null;
  root.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" || event.button !== 0 || !event.target.matches(".cell")) return;
    const cell = event.target, [row, column] = [cell.dataset.row, cell.dataset.column].map(Number);
    held = { cell, row, column, from: map.weights[row][column], y: event.clientY, weight: null };
    root.setPointerCapture(event.pointerId);
  });
  root.addEventListener("pointermove", (event) => {
    if (!held || (held.weight === null && Math.abs(event.clientY - held.y) < 4)) return;
    held.weight = Math.min(Math.max(held.from + (held.y - event.clientY) / PIXELS, 0), 1);
    held.cell.setAttribute("fill", paint(held.weight));
    drag({ row: held.row, column: held.column, weight: held.weight, done: false });
  });
  root.addEventListener("pointerup", () => {
    const { row, column, weight } = held ?? {};
    const cell = held?.cell;
    held = null;
    if (weight != null) drag({ row, column, weight, done: true });
    // The pointer was captured, so the click that follows is the root's.
    else cell?.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  });
}
