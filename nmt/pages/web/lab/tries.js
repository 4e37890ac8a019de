// @ts-check
// The three things to try with a translation, and starting over.

import { element, part } from "../dom.js";
import { label } from "../i18n.js";
import { isSpecial } from "../words.js";
import { answers, shownMap } from "./answers.js";
import { blockWord } from "./inspector.js";
import { select } from "./results.js";
import { askAgain } from "./signals.js";
import { hasChanges, state, unchanged, writeAddress } from "./state.js";

/** @typedef {import("./maps.js").LabMap} LabMap */

/** The cell of the largest weight, if possible not of a special piece. @param {LabMap} map */
function strongestCell({ weights, rows, columns }) {
  const cells = weights.flatMap((line, row) => line.map((weight, column) => ({ row, column, weight: isSpecial(rows[row]) || isSpecial(columns[column]) ? weight - 1 : weight })));
  const { row, column } = cells.reduce((best, cell) => cell.weight > best.weight ? cell : best);
  return { row, column };
}

/** The three things to try: each does what it says. What was tried is marked. */
export function listenToTries() {
  const act = (/** @type {string} */ id, /** @type {(map: LabMap) => void} */ tried) => element[id].addEventListener("click", () => {
    const map = shownMap(answers.intact);
    if (!map) return;
    element[id].classList.add("done");
    tried(map);
  });
  act("try-cell", (map) => {
    select(strongestCell(map), "intact");
    /** @type {SVGElement | null} */ (element.intact.querySelector(".map svg"))?.focus({ preventScroll: true });
    element.intact.querySelector(".map .cursor")?.scrollIntoView({ block: "nearest" });
  });
  act("try-block", (map) => {
    const cell = strongestCell(map);
    Object.assign(state, { ...cell, of: "intact" });
    blockWord(map, cell.column);
    askAgain();
  });
  element["start-over"].title = label("startOver");
  element["start-over"].addEventListener("click", () => {
    const isUndoable = hasChanges();
    Object.assign(state, unchanged());
    writeAddress(isUndoable); // the browser's Back button brings the changes back
    element["try-cell"].focus({ preventScroll: true }); // this button disappears
    askAgain();
  });
  element["try-guess"].addEventListener("click", () => {
    element["try-guess"].classList.add("done");
    element["guess-box"].open = true;
    element["guess-box"].scrollIntoView({ block: "start" });
    part(element["guess-table"], "button").focus({ preventScroll: true });
  });
}
