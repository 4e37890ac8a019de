// @ts-check
// The runs of the page: its index, and the weights, which are unpacked when they are shown.

import { part } from "../dom.js";
import { label } from "./texts.js";

/**
 * @typedef {object} Site the maps of a sentence; its labels are numbers of sequences, which the sites share
 * @property {number} layers
 * @property {number} heads
 * @property {number} inputs the pieces that the rows read
 * @property {number} outputs the pieces that the rows predict
 * @property {number} columns
 * @property {(number | null)[][]} entropy of each layer and head in nats
 * @property {number[][][] | null} center of the local window, by layer, head and row
 *
 * @typedef {object} Sentence
 * @property {number} line
 * @property {number} rank of the translation, from 1
 * @property {number | null} score
 * @property {string} text the beginning of the source
 * @property {string[][]} sequences lists of pieces
 * @property {Record<string, Site>} sites
 * @property {Record<string, string>} [weights] by site; on a page that contains all sentences, elements hold them
 *
 * @typedef {{ name: string, sentences: Sentence[], digests?: string[] }} Run of a page with scripts, with their digests
 */

/** @type {{ runs: Run[], scripts: { folder: string, sentences: number } | null }} */
const index = JSON.parse(part(document, "#index").textContent ?? "");
/** A page with many sentences knows only their labels at first; scripts hold the rest of so many sentences each. */
const { scripts } = index;
/** @type {Run[]} */
export const runs = index.runs;
// Maps from several steps of one training run are played as a film.
export const kind = runs.every((run) => /^step \d+$/.test(run.name)) ? "step" : "run";
/** The name of a run in the language of the page. @param {number} run */
export const nameOf = (run) => kind === "step" ? label("stepName", runs[run].name.slice("step ".length)) : runs[run].name;
export const STEPS = 255;
// The number of maps kept in memory: enough for two panels, and to replay a film of 48 frames.
const KEPT = 48;

/** @param {{ line: number, rank: number }} sentence */
export const keyOf = (sentence) => `${sentence.line}.${sentence.rank}`;

/** Every sentence of any run. */
export const pairs = [...new Map(runs.flatMap((run) => run.sentences).reverse().map((sentence) => [keyOf(sentence), sentence])).values()];
pairs.sort((one, other) => one.line - other.line || one.rank - other.rank);

/** Why the maps of a sentence cannot be shown: a script that is missing, or that belongs to another page. */
export class ScriptError extends Error {
  /** @param {"missingFile" | "olderPage"} key of the label that says so @param {string} file */
  constructor(key, file) {
    super(file);
    this.key = key;
  }
}

/** @type {Map<string, Promise<void>>} */
const arrivals = new Map();

// A page that opens from disk cannot fetch a file, but it can add a script, which calls this function.
Object.assign(window, {
  addSentences(/** @type {number} */ run, /** @type {number} */ start, /** @type {string} */ digest, /** @type {Partial<Sentence>[]} */ sentences) {
    if (!scripts || runs[run]?.digests?.[start / scripts.sentences] !== digest) return; // of another page
    sentences.forEach((sentence, i) => Object.assign(runs[run].sentences[start + i], sentence));
  },
});

/** Waits until a sentence of a run has its maps. Fails with a ScriptError. @param {number} run @param {number} place @returns {Promise<void>} */
export function arrival(run, place) {
  if (!scripts || place < 0) return Promise.resolve();
  const name = `${scripts.folder}/${run}-${Math.floor(place / scripts.sentences)}.js`;
  const known = arrivals.get(name);
  if (known) return known;
  /** @type {Promise<void>} */
  const loading = new Promise((resolve, reject) => {
    const script = document.createElement("script");
    const fail = (/** @type {"missingFile" | "olderPage"} */ key) => { arrivals.delete(name); reject(new ScriptError(key, name)); };
    script.onload = () => "sites" in runs[run].sentences[place] ? resolve() : fail("olderPage");
    script.onerror = () => fail("missingFile");
    script.src = name;
    document.head.append(script);
  });
  arrivals.set(name, loading);
  return loading;
}

// A Map keeps the order of insertion, so the first is the least recently used.
/** @type {Map<string, Promise<Uint8Array>>} */
const inflated = new Map();

/** The weights of a sentence in steps of 1/255, in the order layers, heads, rows, columns. @param {number} run @param {number} index @param {string} site */
export function weightsOf(run, index, site) {
  const id = `weights-${run}-${index}-${site}`;
  const packed = runs[run].sentences[index].weights?.[site] ?? document.getElementById(id)?.textContent ?? "";
  const weights = inflated.get(id) ?? inflate(packed);
  inflated.delete(id);
  inflated.set(id, weights);
  if (inflated.size > KEPT) inflated.delete(/** @type {string} */ (inflated.keys().next().value));
  return weights;
}

/** @param {string} base64 */
async function inflate(base64) {
  const packed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
