// @ts-check
// What can be saved of the page: its maps as a picture or as numbers.

import { onPaper } from "../colors.js";
import { element, part } from "../dom.js";
import { answers, search, shownMaps } from "./answers.js";
import { drawAttribution, shownAttribution } from "./attribution.js";
import { draw } from "./results.js";
import { pictureOf, pngFile, save, svgFile } from "./save.js";
import { state, subject } from "./state.js";
import { complain } from "./status.js";

/** The maps on the page as CSV; the attribution comes last. */
function csv() {
  /** @type {(string | number)[][]} */
  const lines = [];
  const attribution = shownAttribution();
  /** @param {string} name @param {{ rows: string[], columns: string[], weights: number[][] }} map */
  const add = (name, { rows, columns, weights }) => rows.forEach((row, r) => columns.forEach((column, c) => lines.push([name, row, column, weights[r][c]])));
  for (const [name, map] of Object.entries(shownMaps())) if (map) add(name, map);
  if (attribution) add(state.method, { rows: attribution.outputs, columns: attribution.columns, weights: attribution.attribution });
  const written = (/** @type {string | number} */ cell) => typeof cell === "string" ? `"${cell.replaceAll('"', '""')}"` : cell;
  return ["map,target,source,weight", ...lines.map((line) => line.map(written).join(",")), ""].join("\n");
}

function drawn() {
  const picture = onPaper(() => {
    draw();
    drawAttribution();
    return pictureOf(subject.source, [...document.querySelectorAll(".result:not([hidden])")].filter((section) => section.querySelector("svg")));
  });
  draw();
  drawAttribution();
  return picture;
}

function json() {
  const { intact, forced, changed, other } = answers;
  return JSON.stringify({ state, intact: { ...intact, ...subject }, forced, changed, other, beam: search, attribution: shownAttribution() }, null, 1);
}

/** @type {Record<string, () => Blob | Promise<Blob>>} */
const FILES = {
  svg: () => svgFile(drawn()),
  png: () => pngFile(drawn()),
  json: () => new Blob([json()], { type: "application/json" }),
  csv: () => new Blob([csv()], { type: "text/csv" }),
};


export function listenToDownloads() {
  for (const [kind, file] of Object.entries(FILES)) {
    element[`save-${kind}`].addEventListener("click", async () => {
      try { save(`attention-${subject.run.replaceAll("/", "-")}-${state.site}.${kind}`, await file()); } catch (error) { complain(error); }
    });
  }
  // A menu closes when something is chosen, or something else is clicked.
  const menu = element["save-menu"];
  const close = () => {
    const hadFocus = menu.contains(document.activeElement);
    menu.open = false;
    if (hadFocus) part(menu, "summary").focus({ preventScroll: true });
  };
  document.addEventListener("click", ({ target }) => { if (target instanceof Element && menu.open && !target.closest("summary")) close(); });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.stopPropagation();
    close();
  });
}
