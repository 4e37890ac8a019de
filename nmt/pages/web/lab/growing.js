// @ts-check
// The translation while the search finds it: it appears piece by piece with its map.

import { element, part } from "../dom.js";
import { annotatedLayout } from "../heat_map.js";
import { engine, latest } from "./asking.js";
import { setShown } from "./hover.js";
import { selectedMap } from "./maps.js";
import { showNames } from "./outcome.js";
import { allowSaving, drawMap, setGrowing, showVerdict } from "./results.js";
import { selectedPlace, state } from "./state.js";
import { forgetSteps } from "./steps.js";
import { forgetWords } from "./translation.js";

/** @typedef {import("../engine/interface.js").Question} Question */
/** @typedef {import("./answers.js").Search} Search */

// Drawing the map of a long sentence takes much longer than a step, so it grows in larger steps.
const CELLS_PER_STEP = 500;

/**
 * Runs the search. If there are no changes, the translation appears piece by piece with its map.
 * @param {Question} question @param {() => boolean} isLatest
 */
export async function watched(question, isLatest) {
  /** @type {Search["steps"]} */
  const steps = [];
  const paragraph = part(element.answer, ".translation"), growing = !state.changes.length;
  let drawnCells = 0;
  forgetSteps();
  if (growing) {
    setGrowing(true);
    setShown({});
    allowSaving(false);
    forgetWords();
    element.intact.hidden = false;
    element.steps.hidden = true;
    showNames();
    showVerdict(element.intact, "");
  }
  const result = await latest("translate", (signal) => engine.translate({ ...question, ...growing ? selectedPlace() : {} }, signal, ({ text, beams, map }) => {
    steps.push(beams);
    if (!map || !isLatest()) return;
    paragraph.textContent = text;
    if (drawnCells > CELLS_PER_STEP * steps.length) return;
    drawnCells += map.outputs.length * map.columns.length;
    // The answer contains only the selected map.
    const shown = selectedMap(map, 0, 0);
    drawMap(element.intact, shown, shown.most, null, () => {}, annotatedLayout(part(element.intact, ".map"), shown));
  }));
  return { steps, ...result };
}
