// @ts-check
// Beam search for one sentence; with a beam of 1 it is greedy search. As nmt/decoding/beam.py and constraints.py.

import { BOS, EOS, logProbsOf, step } from "../models/model.js";

/** @typedef {import("../models/model.js").Model} Model */
/** @typedef {import("../models/vectors.js").Vector} Vector */
/** Settings, by the names of configs/search/beam.yaml. */
/**
 * @typedef {object} SearchSettings
 * @property {number} beam_size
 * @property {number} length_penalty
 * @property {number} coverage_penalty
 * @property {number} min_length
 * @property {number | null} max_length
 * @property {number} max_length_ratio
 * @property {number} max_length_offset
 * @property {number} no_repeat_ngram
 */
/** A finished translation: ids without BOS and EOS, log p in nats, and the value by which it is ranked. @typedef {{ ids: number[], logProb: number, score: number }} Hypothesis */
/** The weights of one step, by layer and head. @typedef {number[][][]} Row */
/** An unfinished one. `covered` are the attention weights summed over all steps, `rows` those of each step at the watched site. @typedef {{ ids: number[], logProb: number, state: any, covered: number[], rows: Row[] }} Live */

/** `site` is the site of the decoder to watch; a 0 in `prefix` leaves the choice at its position to the search. @typedef {{ prefix?: number[], maxTarget?: number | null, site?: string, observe?: (live: Live[]) => Promise<void> }} Options */

const PAD = 0, UNK = 1;
const LEAST_COVERED = 1e-3;

/**
 * Beam search with the length and coverage penalties of GNMT (Wu et al. 2016, equation 14):
 * score = log P(Y|X) / ((5 + |Y|) / 6)^alpha + beta sum_s log min(sum_t a_ts, 1).
 * Returns the finished hypotheses, best first. `observe` receives the unfinished ones after each step, best first.
 * @param {Model} model @param {any} memory what the model read @param {number} sourceLength without EOS
 * @param {SearchSettings} settings
 * @param {Options} [options]
 */
export async function search(model, memory, sourceLength, settings, { prefix = [], maxTarget = null, site: watched = "", observe } = {}) {
  const { beam_size: beamSize, length_penalty: alpha, coverage_penalty: beta, min_length: minLength } = settings;
  const longest = longestOf(sourceLength + 1, lastOf(prefix), maxTarget, settings);
  const lengthFactor = (/** @type {number} */ length) => ((5 + length) / 6) ** alpha;
  const begun = beginnings(model, memory, prefix.slice(0, givenOf(prefix, longest)), sourceLength, watched);
  for (const beginning of begun.slice(1)) await observe?.([beginning]);
  let live = begun.slice(-1);
  /** @type {Hypothesis[]} */
  const finished = [];
  for (let length = begun.length; live.length; length++) { // the number of pieces after this step
    const { weights, watch } = recordedWeights(model);
    const { logProbs, states } = step(model, live.map(({ ids }) => ids.at(-1) ?? BOS), live.map(({ state }) => state), memory, watch);
    live = live.map((one, row) => ({ ...one, ...attended(one, weights, row, watched) }));
    const only = longest === length ? EOS : prefix[length - 1] || undefined;
    // A hypothesis must not end before a later piece of the prefix.
    const least = Math.max(minLength, lastOf(prefix) + 1);
    for (const [row, { ids }] of live.entries()) constrain(logProbs[row], ids, only, least, settings.no_repeat_ngram);
    const candidates = bestCandidates(live, logProbs, 2 * beamSize);
    if (candidates.some(({ logProb }) => Number.isNaN(logProb))) throw new Error("The model's probabilities are not numbers.");
    for (const { parent, piece, logProb } of candidates.slice(0, beamSize)) {
      if (piece !== EOS) continue;
      const coverage = beta ? beta * live[parent].covered.reduce((sum, covered) => sum + Math.log(Math.min(Math.max(covered, LEAST_COVERED), 1)), 0) : 0;
      finished.push({ ids: live[parent].ids, logProb, score: logProb / lengthFactor(length) + coverage });
    }
    live = candidates.filter(({ piece }) => piece !== EOS).slice(0, beamSize).map(({ parent, piece, logProb }) => (
      { ids: [...live[parent].ids, piece], logProb, state: states[parent], covered: live[parent].covered, rows: live[parent].rows }));
    if (live.length && observe) await observe(live);
    if (isDone(live, length)) break;
  }
  return finished.sort((a, b) => b.score - a.score);

  /** Whether the search has enough hypotheses, is at the maximum length, or cannot improve. @param {Live[]} unfinished @param {number} length */
  function isDone(unfinished, length) {
    const highest = unfinished.length ? unfinished[0].logProb : -Infinity;
    const best = Math.max(-Infinity, ...finished.map(({ score }) => score));
    const enough = finished.length >= beamSize && (beamSize === 1 || highest / lengthFactor(length) <= best);
    // Log-probabilities never increase, so this is the highest score that an unfinished hypothesis can still get.
    const bound = highest / lengthFactor(alpha >= 0 ? longest : length + 1);
    return enough || longest <= length || best >= bound;
  }
}

/** The weights of all sites as they are computed, by site, layer, row and head. @typedef {Record<string, number[][][][]>} Weights */

/** @param {Model} model */
function recordedWeights(model) {
  /** @type {Weights} */
  const weights = Object.fromEntries(Object.entries(model.sites).map(([site, layers]) => [site, layers.map(() => [])]));
  /** @type {import("../models/model.js").WatchSite} */
  const watch = (site, layer) => (computed) => { weights[site][layer].push(computed.weights); };
  return { weights, watch };
}

/** What a hypothesis has attended to after one more step, which computed a row of the weights. @param {Pick<Live, "covered" | "rows">} before @param {Weights} weights @param {number} row @param {string} watched */
function attended({ covered, rows }, weights, row, watched) {
  const weight = meanOf(weights.cross[weights.cross.length - 1][row]);
  return {
    covered: covered.map((sum, position) => sum + weight[position]),
    rows: watched ? [...rows, weights[watched].map((ofLayer) => ofLayer[row])] : [],
  };
}

/**
 * The hypothesis after each piece of the given beginning of a translation, and before the first. All are read at once,
 * which takes less time than steps; only the last one has the State to go on from.
 * @param {Model} model @param {any} memory @param {number[]} given @param {number} sourceLength @param {string} watched @returns {Live[]}
 */
function beginnings(model, memory, given, sourceLength, watched) {
  const empty = { ids: [], logProb: 0, state: null, covered: new Array(sourceLength).fill(0), rows: [] };
  if (!given.length) return [{ ...empty, state: model.start(memory) }];
  const { weights, watch } = recordedWeights(model);
  const { logProbs, state } = logProbsOf(model, memory, given.slice(0, -1), watch);
  /** @type {Live[]} */
  const begun = [empty];
  for (const [row, piece] of given.entries()) {
    const { ids, logProb, covered, rows } = begun[row];
    begun.push({ ids: [...ids, piece], logProb: logProb + logProbs[row][piece], state, ...attended({ covered, rows }, weights, row, watched) });
  }
  return begun;
}

/** The number of pieces before the first free one; the search still has a piece to add. @param {number[]} prefix @param {number} longest */
function givenOf(prefix, longest) {
  const free = prefix.findIndex((id) => !id);
  return Math.min(free < 0 ? prefix.length : free, longest - 1);
}

/** The number of pieces up to the last one that is not free. @param {number[]} prefix */
const lastOf = (prefix) => prefix.reduce((last, id, index) => id ? index + 1 : last, 0);

/** The maximum number of pieces, EOS included. @param {number} source with EOS @param {number} prefix @param {number | null} maxTarget @param {SearchSettings} settings */
function longestOf(source, prefix, maxTarget, { min_length, max_length, max_length_ratio, max_length_offset }) {
  const wanted = Math.min(Math.trunc(source * max_length_ratio + max_length_offset), max_length ?? Infinity);
  return Math.min(Math.max(wanted, prefix + 1, min_length), maxTarget ?? Infinity);
}

/**
 * Gives -Infinity to the pieces that must not come next. A piece that must come next precedes all other constraints.
 * @param {Vector} logProbs @param {number[]} history @param {number | undefined} only @param {number} minLength @param {number} ngram no sequence of as many pieces occurs twice; 0: no limit
 */
function constrain(logProbs, history, only, minLength, ngram) {
  if (only !== undefined) {
    const kept = logProbs[only];
    logProbs.fill(-Infinity);
    logProbs[only] = kept;
    return;
  }
  for (const piece of [PAD, UNK, BOS]) logProbs[piece] = -Infinity;
  if (history.length + 1 < minLength) logProbs[EOS] = -Infinity;
  if (!ngram || history.length < ngram) return;
  const last = history.slice(history.length - ngram + 1);
  for (let start = 0; start + ngram <= history.length; start++) {
    if (last.every((piece, index) => history[start + index] === piece)) logProbs[history[start + ngram - 1]] = -Infinity;
  }
}

/** The extensions by one piece with the highest log-probabilities, best first. @param {Live[]} live @param {Vector[]} logProbs @param {number} number */
function bestCandidates(live, logProbs, number) {
  /** @type {{ parent: number, piece: number, logProb: number }[]} */
  const best = [];
  for (const [parent, { logProb: before }] of live.entries()) {
    const ofParent = logProbs[parent];
    for (let piece = 0; piece < ofParent.length; piece++) {
      const logProb = before + ofParent[piece];
      if (logProb === -Infinity || (best.length === number && logProb <= best[number - 1].logProb)) continue;
      let rank = best.length;
      while (rank && best[rank - 1].logProb < logProb) rank--;
      best.splice(rank, 0, { parent, piece, logProb });
      if (best.length > number) best.pop();
    }
  }
  return best;
}

/** @param {number[][]} weights by head */
const meanOf = (weights) => weights[0].map((_, key) => weights.reduce((sum, ofHead) => sum + ofHead[key], 0) / weights.length);
