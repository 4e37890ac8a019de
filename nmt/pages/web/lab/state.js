// @ts-check
// What the lab shows. The address keeps it, so a link opens the same view.

import { readAnchor, writeAnchor } from "../address.js";
import { element } from "../dom.js";
import { otherLanguage } from "../language.js";
import { MEAN, SITES } from "../map.js";

/** @typedef {import("../map.js").Choice} Choice */
/** @typedef {import("../engine/interface.js").Location} Location */
/**
 * @typedef {object} Edit a change that the user made
 * @property {string} key edits with the same key replace each other
 * @property {(string | number)[]} says the name of its label, and the label's values
 * @property {Location} place
 * @property {import("../engine/interface.js").Change[]} changes what the engine is asked for
 */
/**
 * @typedef {object} State
 * @property {string} run
 * @property {string} second the run to compare with, or ""
 * @property {string} text
 * @property {string} site
 * @property {Choice} layer
 * @property {Choice} head
 * @property {Choice} otherLayer of the second run
 * @property {Choice} otherHead
 * @property {import("../words.js").Unit} unit
 * @property {string} view heat or lines
 * @property {boolean} difference
 * @property {number | null} beamSize
 * @property {number | null} lengthPenalty
 * @property {Edit[]} changes
 * @property {number[]} prefix the piece ids that the translation begins with
 * @property {number[]} locks the piece ids that stay at their positions; 0 where there is none
 * @property {number | null} row
 * @property {number | null} column
 * @property {string} of the map in which row and column are selected
 * @property {string} method of the attribution, if it is open
 * @property {string} contrast
 * @property {string} pair the sentence of the guessing game
 * @property {number[][]} guess
 * @property {boolean} revealed
 */

/** What a new sentence begins with: no changes, and no selection. @returns {Pick<State, "changes" | "prefix" | "locks" | "row" | "column" | "of">} */
export const unchanged = () => ({ changes: [], prefix: [], locks: [], row: null, column: null, of: "intact" });

/** What a page without a guess has, and what a new guess begins with. @returns {Pick<State, "pair" | "guess" | "revealed">} */
export const noGuess = () => ({ pair: "", guess: [], revealed: false });

/** @type {State} */
const DEFAULTS = {
  run: "", second: "", text: "",
  site: "cross", layer: MEAN, head: MEAN, otherLayer: MEAN, otherHead: MEAN,
  unit: "words", view: "heat", difference: false,
  beamSize: null, lengthPenalty: null,
  ...unchanged(),
  method: "", contrast: "",
  ...noGuess(),
};
/** The values that a choice may have. @type {Record<string, string[]>} */
const VALUES = { site: SITES, unit: ["words", "pieces"], view: ["heat", "lines"], of: ["intact", "changed", "other"] };
export const state = structuredClone(DEFAULTS);

/** The runs and the sentence that the answers on the page belong to, which `state` may have left already. */
export const subject = { run: "", source: "", second: "" };

/** Whether there are changes of the translation, apart from locks that stay. @param {number[]} [locks] */
export const hasChanges = (locks = []) => state.changes.length > 0 || state.prefix.length > 0 || state.locks.length > locks.length;

/** Whether somebody has selected or changed something. */
export const isTouched = () => state.row !== null || state.column !== null || hasChanges();

const chosen = (/** @type {Choice} */ choice) => choice === MEAN ? null : choice;

/** The selected site, layer and head. @returns {Location} */
export const selectedPlace = () => ({ site: state.site, layer: chosen(state.layer), head: chosen(state.head) });

/** Whether a position of the locks has a piece. @param {number} id */
export const isKept = (id) => id > 0;

/** Locks the positions from `start` to before `end` to their pieces among `ids`, or frees those that it lacks. @param {number} start @param {number} end @param {number[]} ids */
export function setLocks(start, end, ids) {
  const length = Math.max(state.locks.length, end);
  state.locks = Array.from({ length }, (_, i) => (i >= start && i < end ? ids : state.locks)[i] ?? 0);
  while (state.locks.length && !isKept(state.locks[state.locks.length - 1])) state.locks.pop();
}

/** Whether a change is about a position of the translation that is `start` or later. @param {import("../engine/interface.js").Change} change @param {number} start */
function isAfter({ site, steps = [], columns = [] }, start) {
  if (site === "encoder_self") return false; // its rows are words of the source
  // A column of what is read so far is the piece of the row before; the first one is the sentence's beginning.
  const read = site === "decoder_self" ? /** @type {number[]} */ (columns).map((column) => column - 1) : [];
  return [...steps, ...read].some((position) => position >= start);
}

/**
 * Lets the translation begin with `prefix`. From the first piece that this changes, locks and changes were made for
 * other words: they are dropped. Returns whether there were any.
 * @param {number[]} prefix @param {number[]} ids the translation for which they were made
 */
export function beginWith(prefix, ids) {
  const changed = prefix.findIndex((id, i) => id !== ids[i]), start = changed < 0 ? prefix.length : changed;
  const kept = state.changes.filter((edit) => !edit.changes.some((change) => isAfter(change, start)));
  const isDropped = kept.length < state.changes.length || state.locks.slice(start).some(isKept);
  Object.assign(state, { prefix, changes: kept });
  setLocks(start, state.locks.length, []);
  return isDropped;
}

/** The pieces that the translation must have: its beginning and the locked ones; 0 where the search is free. */
export const keptIds = () => Array.from({ length: Math.max(state.prefix.length, state.locks.length) }, (_, i) => state.prefix[i] ?? state.locks[i]);

function anchorOfState() {
  const anchor = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    const text = JSON.stringify(value);
    if (text !== JSON.stringify(DEFAULTS[/** @type {keyof State} */ (key)])) anchor.set(key, typeof value === "string" ? value : text);
  }
  return anchor;
}

/** Lets the link to the page in the other language open what this one shows. */
export function linkLanguage(anchor = anchorOfState()) {
  const query = new URLSearchParams(location.search);
  query.set("lang", otherLanguage);
  element.language.href = `?${query}#${anchor}`;
}

/** With `isNew`, the browser's Back button returns to the previous address. */
export function writeAddress(isNew = false) {
  const anchor = anchorOfState();
  writeAnchor(anchor, isNew);
  linkLanguage(anchor);
}

/** Takes the state from the address. A value that cannot be read is replaced by its default. @param {string[]} runs their names */
export function readAddress(runs) {
  const anchor = readAnchor();
  Object.assign(state, structuredClone(DEFAULTS));
  for (const [key, fallback] of Object.entries(DEFAULTS)) {
    const text = anchor.get(key);
    if (text === null) continue;
    const value = typeof fallback === "string" && fallback !== MEAN || text === MEAN ? text : parsed(text);
    const fits = typeof fallback === "string" && fallback !== MEAN ? true
      : Array.isArray(fallback) ? Array.isArray(value)
      : typeof fallback === "boolean" ? typeof value === "boolean"
      : value === fallback || (key === "lengthPenalty" ? typeof value === "number" && value >= 0 : Number.isInteger(value) && value >= 0);
    if (fits) Object.assign(state, { [key]: value });
  }
  // Piece ids and changes belong to the run that the address names.
  if (!runs.includes(state.run)) Object.assign(state, state.run ? unchanged() : {}, { run: runs[0] });
  if (!runs.includes(state.second)) state.second = "";
  for (const [key, values] of Object.entries(VALUES)) {
    const name = /** @type {keyof State} */ (key);
    if (!values.includes(String(state[name]))) Object.assign(state, { [name]: DEFAULTS[name] });
  }
  if (state.beamSize === 0) state.beamSize = null;
  state.changes = state.changes.filter((edit) => typeof edit?.key === "string" && Array.isArray(edit.says) && edit.place?.site && Array.isArray(edit.changes) && edit.changes.length > 0);
  state.prefix = state.prefix.filter(Number.isInteger);
  state.locks = state.locks.filter(Number.isInteger);
  state.guess = state.guess.filter((link) => Array.isArray(link) && link.length === 2 && link.every(Number.isInteger));
}

/** @param {string} text */
function parsed(text) {
  try { return JSON.parse(text); } catch { return null; }
}
