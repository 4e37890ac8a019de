// Draws a map as a heat map: rows are the target, columns the source.

import { colorOf, css, darkness } from "/page/colors.js";
import { listen, picture, replace, short, svg, widthOf } from "/page/svg.js";
import { label } from "/page/text.js";

const LEAST = 20, MOST = 44, GAP = 1, PIXELS = 120, LEGEND = 34;

// A difference is white at 0 (in dark mode, black), red where the first weight is larger (in dark mode, orange), and
// blue where the second is.
function colorOfDifference(share) {
  const [from, to] = darkness.matches ? [[20, 19, 26], share > 0 ? [254, 159, 109] : [120, 185, 255]]
    : [[255, 255, 255], share > 0 ? [178, 24, 43] : [33, 102, 172]];
  const part = Math.min(Math.abs(share), 1);
  return from.map((value, i) => Math.round(value + (to[i] - value) * part));
}

// `map` has rows, columns (labels), weights (lists of numbers) and isBlocked(row, column). `choose` is called with
// {row, column}, one of which may be null. `drag`, if given, is called with {row, column, weight, done} while a cell is
// dragged up or down, and with `done` set when it is released.
export function drawHeat(place, map, { most, selection, name, choose, drag, signed = false }) {
  const left = Math.max(...map.rows.map((text) => widthOf(text)), 40), slant = Math.max(...map.columns.map((text) => widthOf(text))) * Math.SQRT1_2;
  const top = slant + 28, room = Math.floor((place.parentElement.clientWidth - left - slant) / map.columns.length);
  const cell = Math.min(Math.max(room, LEAST), MOST), wide = cell * map.columns.length, high = cell * map.rows.length;
  const root = picture(left + Math.max(wide, 160) + slant, top + high + LEGEND, name);
  const paint = (weight) => css((signed ? colorOfDifference : colorOf)(most > 0 ? weight / most : 0));
  root.append(svg("rect", { class: "grid", fill: "#ddd", x: left - GAP, y: top - GAP, width: wide + GAP, height: high + GAP }));
  root.append(svg("text", { class: "axis", x: left, y: 12 }, `${map.names[1]} →`), svg("text", { class: "axis", x: 0, y: top - 6 }, `${map.names[0]} ↓`));
  map.columns.forEach((text, column) => {
    const chosen = selection?.column === column ? "label chosen" : "label";
    const at = `translate(${left + (column + 0.6) * cell} ${top - 6}) rotate(-45)`;
    root.append(svg("text", { class: chosen, transform: at, "data-column": column }, short(text), svg("title", {}, text)));
  });
  map.rows.forEach((text, row) => {
    const chosen = selection?.row === row ? "label chosen" : "label";
    const at = { x: left - 8, y: top + (row + 0.65) * cell, "text-anchor": "end", "data-row": row };
    root.append(svg("text", { class: chosen, ...at }, short(text), svg("title", {}, text)));
    map.columns.forEach((source, column) => {
      const weight = map.weights[row][column], blocked = map.isBlocked(row, column);
      const [x, y] = [left + column * cell, top + row * cell];
      const title = svg("title", {}, blocked ? label("blocked", text, source) : `${text} → ${source}: ${weight.toFixed(3)}`);
      root.append(svg("rect", {
        class: blocked ? "cell blocked" : "cell", x, y, width: cell - GAP, height: cell - GAP,
        fill: paint(weight), "data-row": row, "data-column": column,
      }, title));
      if (blocked) root.append(svg("path", { class: "cross", d: `M${x + 4} ${y + cell - 5}L${x + cell - 5} ${y + 4}` }));
    });
  });
  root.append(...legend(left, top + high + 12, most, signed, paint));
  outline(root, map, selection, left, top, cell);
  listen(root, map, selection, choose);
  if (drag) listenToDrag(root, map, drag, paint);
  replace(place, root);
}

// The color scale, from 0 (or the most negative difference) to the largest weight on the page.
function legend(x, y, most, signed, paint) {
  const steps = 24, from = signed ? -most : 0, width = 100 / steps;
  const shown = (value) => (most < 0.1 && value ? value.toPrecision(2) : value.toFixed(2)).replace("-", "−");
  return [
    svg("text", { class: "axis", x: x - 6, y: y + 10, "text-anchor": "end" }, shown(from)),
    ...[...Array(steps).keys()].map((step) => svg("rect", {
      x: x + step * width, y, width: width + 0.5, height: 10, fill: paint(from + (most - from) * step / (steps - 1)),
    })),
    svg("text", { class: "axis", x: x + 106, y: y + 10 }, shown(most)),
  ];
}

function outline(root, map, selection, left, top, cell) {
  const { row, column } = selection ?? { row: null, column: null };
  const hasRow = row !== null && row < map.rows.length, hasColumn = column !== null && column < map.columns.length;
  const box = (kind, x, y, columns, rows) => root.append(svg("rect", {
    class: kind, x: left + x * cell - 1, y: top + y * cell - 1, width: cell * columns + 1, height: cell * rows + 1,
  }));
  if (hasRow) box("outline", 0, row, map.columns.length, 1);
  if (hasRow && hasColumn) box("cursor", column, row, 1, 1);
  if (hasColumn && !hasRow) box("outline", column, 0, 1, map.rows.length);
}

// Dragging a cell up raises its weight, and dragging it down lowers it. A touch scrolls instead.
function listenToDrag(root, map, drag, paint) {
  let held = null;
  const number = root.appendChild(svg("text", { class: "dragged" }));
  root.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" || event.button !== 0 || !event.target.matches(".cell:not(.blocked)")) return;
    const cell = event.target, [row, column] = [cell.dataset.row, cell.dataset.column].map(Number);
    held = { cell, row, column, from: map.weights[row][column], y: event.clientY, weight: null };
    root.setPointerCapture(event.pointerId);
  });
  root.addEventListener("pointermove", (event) => {
    if (!held || (held.weight === null && Math.abs(event.clientY - held.y) < 4)) return;
    held.weight = Math.min(Math.max(held.from + (held.y - event.clientY) / PIXELS, 0), 1);
    held.cell.setAttribute("fill", paint(held.weight));
    number.textContent = held.weight.toFixed(2);
    number.setAttribute("x", Number(held.cell.getAttribute("x")) + 4);
    number.setAttribute("y", Number(held.cell.getAttribute("y")) - 4);
    drag({ row: held.row, column: held.column, weight: held.weight, done: false });
  });
  root.addEventListener("pointercancel", () => { held = null; });
  root.addEventListener("pointerup", () => {
    const { row, column, weight } = held ?? {};
    const cell = held?.cell;
    held = null;
    if (weight != null) drag({ row, column, weight, done: true });
    // The pointer was captured, so the root receives the click that follows.
    else cell?.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  });
}
