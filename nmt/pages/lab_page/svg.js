// SVG elements, and what heat maps and line drawings have in common: labels, and selecting a cell by mouse or keyboard.

export const svg = (tag, attributes = {}, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

export const picture = (width, height, name) => svg("svg", {
  width, height, viewBox: `0 0 ${width} ${height}`, role: "application", tabindex: 0, "aria-label": name,
  xmlns: "http://www.w3.org/2000/svg",
});

export const short = (text, most = 18) => [...text].length > most ? `${[...text].slice(0, most - 1).join("")}…` : text;

const ruler = document.createElement("canvas").getContext("2d");
ruler.font = '650 13px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif';
export const widthOf = (text, most) => Math.ceil(ruler.measureText(short(text, most)).width) + 12;

// Every element with data-row or data-column can be clicked; the arrow keys move from cell to cell.
export function listen(root, map, selection, choose) {
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
}

// Puts a drawing into the page without losing the focus.
export function replace(place, root) {
  const focused = place.contains(document.activeElement);
  place.replaceChildren(root);
  if (focused) root.focus();
}

// Puts all drawings with their titles side by side into one picture. A picture has no style sheet, so this sets its
// fonts and colors.
export function pictureOf(sections) {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();
  const root = svg("svg", { xmlns: "http://www.w3.org/2000/svg" });
  let x = 12, high = 0;
  for (const section of sections) {
    const copy = section.querySelector("svg").cloneNode(true);
    const [width, height] = ["width", "height"].map((name) => Number(copy.getAttribute(name)));
    for (const extra of copy.querySelectorAll(".outline, .cursor, .dragged")) extra.remove();
    const title = section.querySelector("h2").textContent, words = section.querySelector(".translation")?.textContent ?? "";
    root.append(svg("text", { x, y: 20, "font-weight": "bold" }, title), svg("text", { x, y: 40 }, words));
    for (const [name, value] of Object.entries({ x, y: 52 })) copy.setAttribute(name, value);
    root.append(copy);
    x += Math.max(width, widthOf(title, 60), widthOf(words, 200)) + 24;
    high = Math.max(high, height);
  }
  for (const text of root.querySelectorAll("text")) {
    text.setAttribute("font-family", "sans-serif");
    text.setAttribute("font-size", text.matches(".axis") ? "11" : "13");
    text.setAttribute("fill", color(text.matches(".axis") ? "--muted" : "--ink"));
  }
  for (const line of root.querySelectorAll("path")) {
    line.setAttribute("fill", "none");
    line.setAttribute("stroke", color(line.matches(".cross") ? "--rule" : "--weight"));
  }
  const size = { width: Math.ceil(x), height: Math.ceil(high + 64) };
  for (const [name, value] of Object.entries({ ...size, viewBox: `0 0 ${size.width} ${size.height}` })) root.setAttribute(name, value);
  root.prepend(svg("rect", { width: "100%", height: "100%", fill: color("--paper") }));
  return root;
}

export const svgFile = (drawing) => new Blob([new XMLSerializer().serializeToString(drawing)], { type: "image/svg+xml" });

// Twice the size on the screen, for print and projectors.
export async function pngFile(drawing) {
  const image = new Image(), address = URL.createObjectURL(svgFile(drawing));
  const loaded = new Promise((resolve, reject) => Object.assign(image, { onload: resolve, onerror: reject }));
  image.src = address;
  await loaded;
  URL.revokeObjectURL(address);
  const canvas = Object.assign(document.createElement("canvas"), { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); });
}

export function save(name, file) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
