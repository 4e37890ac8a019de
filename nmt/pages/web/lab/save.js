// @ts-check
// The drawings of the page as one file, for print and projectors.

import { svg, widthOf } from "../draw.js";
import { element, part } from "../dom.js";
import { giveTip } from "../heat_map.js";
import { label } from "../i18n.js";

// The colors of style.css on white.
const PAPER = "#ffffff", INK = "#1d1b22", MUTED = "#625e6b", RULE = "#e4e1e8", WEIGHT = "#7d2482";

/** The words of a translation as far as it is shown step by step. @param {Element} section */
function wordsOf(section) {
  const copy = section.querySelector(".translation")?.cloneNode(true);
  if (!(copy instanceof Element)) return "";
  for (const later of copy.querySelectorAll(".later")) later.remove();
  return copy.textContent?.trim() ?? "";
}

/**
 * Puts all drawings with their titles side by side, below the sentence, into one picture. A picture has no style sheet,
 * so this sets its fonts and colors. It is for white paper: the drawings must be too.
 * @param {string} sentence @param {Element[]} sections
 */
export function pictureOf(sentence, sections) {
  const root = svg("svg", { xmlns: "http://www.w3.org/2000/svg" });
  const place = (/** @type {Element} */ item, /** @type {Record<string, string | number>} */ values) => {
    for (const [name, value] of Object.entries(values)) item.setAttribute(name, String(value));
  };
  root.append(svg("text", { x: 12, y: 24 }, sentence));
  let x = 12, high = 0;
  for (const section of sections) {
    const copy = /** @type {Element} */ (part(section, "svg").cloneNode(true));
    const [width, height] = ["width", "height"].map((name) => Number(copy.getAttribute(name)));
    for (const extra of copy.querySelectorAll(".outline, .cursor, .dragged, .readout, .hit")) extra.remove();
    for (const later of copy.querySelectorAll(".later")) {
      if (!later.matches(".cell")) later.remove();
      else {
        place(later, { fill: PAPER });
        later.removeAttribute("data-tip");
        later.replaceChildren();
      }
    }
    copy.querySelectorAll(".cell").forEach(giveTip);
    const title = part(section, "h2").textContent ?? "", words = wordsOf(section === element.intact ? element.answer : section);
    root.append(svg("text", { x, y: 52, "font-weight": "bold" }, title), svg("text", { x, y: 72 }, words));
    place(copy, { x, y: 84 });
    root.append(copy);
    x += Math.max(width, widthOf(title, 60), widthOf(words, 200)) + 24;
    high = Math.max(high, height);
  }
  for (const text of root.querySelectorAll("text")) {
    const isAxis = text.matches(".axis");
    place(text, { "font-family": "sans-serif", "font-size": isAxis ? 11 : 13, fill: isAxis ? MUTED : INK });
  }
  for (const line of root.querySelectorAll("path")) place(line, { fill: "none", stroke: line.matches(".cross") ? RULE : WEIGHT });
  for (const grid of root.querySelectorAll(".grid")) place(grid, { fill: RULE });
  const width = Math.ceil(Math.max(x, widthOf(sentence, 1000) + 24)), height = Math.ceil(high + 96);
  place(root, { width, height, viewBox: `0 0 ${width} ${height}` });
  root.prepend(svg("rect", { width: "100%", height: "100%", fill: PAPER }));
  return root;
}

/** @param {SVGElement} drawing */
export const svgFile = (drawing) => new Blob([new XMLSerializer().serializeToString(drawing)], { type: "image/svg+xml" });

/** Twice the size on the screen. @param {SVGElement} drawing @returns {Promise<Blob>} */
export async function pngFile(drawing) {
  const image = new Image(), address = URL.createObjectURL(svgFile(drawing));
  image.src = address;
  await image.decode();
  URL.revokeObjectURL(address);
  const canvas = Object.assign(document.createElement("canvas"), { width: 2 * image.width, height: 2 * image.height });
  /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")).drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => { canvas.toBlob((blob) => blob ? resolve(blob) : reject(new Error(label("pictureLarge"))), "image/png"); });
}

/** @param {string} name @param {Blob} file */
export function save(name, file) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(file), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
