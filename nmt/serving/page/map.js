// A heat map as SVG: rows are the target, columns the source. It can be saved as it is.

import { colorOf, css, scale } from "/page/colors.js";

const CELL = 28, GAP = 1;

export const svg = (tag, attributes = {}, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

const short = (text) => [...text].length > 18 ? `${[...text].slice(0, 17).join("")}…` : text;
const ruler = document.createElement("canvas").getContext("2d");
ruler.font = '650 13px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif';
const wide = (text) => Math.ceil(ruler.measureText(short(text)).width) + 12;

// `map` has rows, columns (labels) and weights (lists of numbers); `choose` gets {row, column}, one of which may be null.
export function drawMap(place, map, { most, selection, name, choose }) {
  const left = Math.max(...map.rows.map(wide)), slant = Math.max(...map.columns.map(wide)) * Math.SQRT1_2;
  const width = left + CELL * map.columns.length + slant, height = slant + 18 + CELL * map.rows.length;
  const top = slant + 14;
  const root = svg("svg", {
    width, height, viewBox: `0 0 ${width} ${height}`, role: "application", tabindex: 0, "aria-label": name,
    xmlns: "http://www.w3.org/2000/svg",
  });
  root.append(svg("rect", { class: "grid", fill: "#ddd", x: left - GAP, y: top - GAP, width: CELL * map.columns.length + GAP, height: CELL * map.rows.length + GAP }));
  const is = (row, column) => selection?.row === row && selection?.column === column;
  map.columns.forEach((text, column) => {
    const chosen = selection?.column === column ? "label chosen" : "label";
    const at = `translate(${left + (column + 0.6) * CELL} ${top - 6}) rotate(-45)`;
    const title = svg("title", {}, text);
    root.append(svg("text", { class: chosen, transform: at, "data-column": column }, short(text), title));
  });
  map.rows.forEach((text, row) => {
    const chosen = selection?.row === row ? "label chosen" : "label";
    const title = svg("title", {}, text);
    root.append(svg("text", { class: chosen, x: left - 8, y: top + (row + 0.65) * CELL, "text-anchor": "end", "data-row": row }, short(text), title));
    map.columns.forEach((source, column) => {
      const weight = map.weights[row][column];
      root.append(svg("rect", {
        class: "cell", x: left + column * CELL, y: top + row * CELL, width: CELL - GAP, height: CELL - GAP,
        fill: css(colorOf(most > 0 ? weight / most : 0)), "data-row": row, "data-column": column,
      }, svg("title", {}, `${text} → ${source}: ${weight.toFixed(3)}`)));
    });
  });
  if (selection && selection.row !== null && selection.row < map.rows.length) {
    root.append(svg("rect", { class: "outline", x: left - 1, y: top + selection.row * CELL - 1, width: CELL * map.columns.length + 1, height: CELL + 1 }));
    if (selection.column !== null && selection.column < map.columns.length) {
      root.append(svg("rect", { class: "cursor", x: left + selection.column * CELL - 1, y: top + selection.row * CELL - 1, width: CELL + 1, height: CELL + 1 }));
    }
  } else if (selection && selection.column !== null && selection.column < map.columns.length) {
    root.append(svg("rect", { class: "outline", x: left + selection.column * CELL - 1, y: top - 1, width: CELL + 1, height: CELL * map.rows.length + 1 }));
  }
  const number = (text) => text === undefined ? null : Number(text);
  root.addEventListener("click", ({ target }) => {
    const { row, column } = (target.closest("[data-row],[data-column]") ?? root).dataset;
    if (row !== undefined || column !== undefined) choose({ row: number(row), column: number(column) });
  });
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  root.addEventListener("keydown", (event) => {
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const within = (value, size) => Math.min(Math.max(value, 0), size - 1);
    const from = selection ?? { row: 0, column: -move[1] };
    choose({
      row: within((from.row ?? 0) + move[0], map.rows.length), column: within((from.column ?? 0) + move[1], map.columns.length),
    });
  });
  const focused = place.contains(document.activeElement);
  place.replaceChildren(root);
  if (focused) root.focus();
}

// The picture as a file: with its own font and the colors of the page.
export function pictureOf(place) {
  const copy = place.querySelector("svg").cloneNode(true);
  for (const extra of copy.querySelectorAll(".outline, .cursor")) extra.remove();
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
  for (const text of copy.querySelectorAll("text")) {
    text.setAttribute("font-family", "sans-serif");
    text.setAttribute("font-size", "13");
    text.setAttribute("fill", ink);
  }
  copy.prepend(svg("rect", { width: "100%", height: "100%", fill: scale()[0] }));
  return new XMLSerializer().serializeToString(copy);
}

export function save(name, type, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
