// @ts-check
// The engine's answers to the latest question, and the maps of them that are selected.

import { selectedMap } from "./maps.js";
import { state, subject } from "./state.js";

/** @typedef {import("../engine/interface.js").Translation} Translation */
/** @typedef {import("./maps.js").LabMap} LabMap */

/**
 * The engine's answers to the latest question.
 * @typedef {object} Answers
 * @property {Translation | null} intact the run's own translation
 * @property {Translation | null} forced its pieces with changed attention
 * @property {Translation | null} changed the translation that the search finds with changed attention
 * @property {Translation | null} other the second run's own translation
 * @property {Translation | null} reading the second run's maps for the text of `intact`
 * @property {Translation | null} original the translation without the kept beginning
 */
/** @type {Answers} */
const NONE = { intact: null, forced: null, changed: null, other: null, reading: null, original: null };
/** @type {Answers} */
export const answers = { ...NONE };
/** The search for the question `asked`. @typedef {import("../engine/interface.js").Found & { asked: string, steps: import("../engine/interface.js").Hypothesis[][] }} Search */
/** @type {Search} */
const NO_SEARCH = { asked: "", steps: [], ids: [], text: "", score: 0, unknown_characters: "", unknown_words: [], dictionary_words: [] };
/** @type {Search} */
export const search = { ...NO_SEARCH };

/** Removes the answers from the memory of the page. */
export function forgetAnswers() {
  Object.assign(answers, NONE);
  Object.assign(search, NO_SEARCH);
}

/** Whether the answers belong to the selected run and sentence. */
export const isCurrent = () => answers.intact !== null && subject.run === state.run && subject.source === state.text;

/** The selected map of a translation, if its run has the selected site. @param {Translation | null} translation */
export function shownMap(translation, layer = state.layer, head = state.head, run = subject.run) {
  const maps = translation?.maps[state.site]; // a run may lack the site that the other one has
  return maps ? selectedMap(maps, layer, head, state.unit, run) : null;
}
export const mapOfSecond = (/** @type {Translation | null} */ translation) => shownMap(translation, state.otherLayer, state.otherHead, subject.second);

/** @returns {Record<string, LabMap | null>} */
export const shownMaps = () => ({ intact: shownMap(answers.intact), changed: shownMap(answers.changed), other: mapOfSecond(answers.other) });

/** The end of the color scale that all maps share. @param {Record<string, LabMap | null>} maps */
export const mostOf = (maps) => Math.max(...Object.values(maps).map((map) => map?.most ?? 0));

/** The pieces of the translation whose map a section shows. @param {string} name */
export const piecesOf = (name) => (name === "changed" ? answers.changed : name === "other" ? answers.other : answers.intact)?.pieces ?? [];

/** The maps of all heads of the selected site, of one run or both. @returns {import("./heads.js").HeadsOfRun[]} */
export function headsShown() {
  const { layer, head, otherLayer, otherHead, site } = state, first = answers.intact?.maps[site], second = answers.other?.maps[site];
  return [
    ...first ? [/** @type {const} */ ({ run: subject.run, maps: first, layer, head, layerKey: "layer", headKey: "head" })] : [],
    ...second ? [/** @type {const} */ ({ run: subject.second, maps: second, layer: otherLayer, head: otherHead, layerKey: "otherLayer", headKey: "otherHead" })] : [],
  ];
}
