// @ts-check
// Beam search for one sentence; with a beam of 1 it is greedy search. As nmt/decoding/beam.py and constraints.py.

import { BOS, EOS, force, recordedDecoder, step } from "../models/model.js";

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
/** The weights of one step, by site of the decoder, layer and head. @typedef {Record<string, number[][][]>} Row */
/** A finished translation: ids without BOS and EOS, log p in nats, the value by which it is ranked, and for each piece with EOS its log p and the weights with which it was chosen. @typedef {{ ids: number[], logProb: number, score: number, logProbs: number[], rows: Row[] }} Hypothesis */
/** An unfinished one. `covered` are the cross attention weights summed over all steps. @typedef {Omit<Hypothesis, "score"> & { state: any, covered: number[] }} Live */

/**
 * A 0 in `prefix` leaves the choice at its position to the search. `known` is a translation that was forced with the
 * same attention: the search does not compute its steps again.
 * @typedef {{ prefix?: number[], maxTarget?: number | null, known?: Known | null, observe?: (live: Live[]) => Promise<void> }} Options
 */

/** The ids of a translation, and what forcing it has computed. @typedef {{ ids: number[], forced: import("../models/model.js").Forced }} Known */

const PAD = 0, UNK = 1;
const LEAST_COVERED = 1e-3;

/**
 * Beam search with the length and coverage penalties of GNMT (Wu et al. 2016, equation 14):
 * score = log P(Y|X) / ((5 + |Y|) / 6)^alpha + beta sum_s log min(sum_t a_ts, 1).
 * Returns the finished hypotheses, best first. `observe` receives the unfinished ones after each step, best first.
 * @param {Model} model @param {import("../models/model.js").Reading} reading @param {number} sourceLength without EOS
 * @param {SearchSettings} settings
 * @param {Options} [options]
 */
export async function search(model, reading, sourceLength, settings, { prefix = [], maxTarget = null, known = null, observe } = {}) {
  const { beam_size: beamSize, length_penalty: alpha, coverage_penalty: beta, min_length: minLength } = settings;
  const longest = longestOf(sourceLength + 1, lastOf(prefix), maxTarget, settings);
  const lengthFactor = (/** @type {number} */ length) => ((5 + length) / 6) ** alpha;
  const begun = beginnings(model, reading, prefix.slice(0, givenOf(prefix, longest)), sourceLength, known);
  for (const beginning of begun.slice(1)) await observe?.([beginning]);
  let live = begun.slice(-1);
  /** @type {Hypothesis[]} */
  const finished = [];
  for (let length = begun.length; live.length; length++) { // the number of pieces after this step
    const steps = stepsOf(model, live, reading.memory, known), logProbs = steps.map((one) => one.logProbs);
    live = live.map((one, row) => ({ ...one, ...attended(one, steps[row].weights) }));
    const only = longest === length ? EOS : prefix[length - 1] || undefined;
    // A hypothesis must not end before a later piece of the prefix.
    const least = Math.max(minLength, lastOf(prefix) + 1);
    for (const [row, { ids }] of live.entries()) constrain(logProbs[row], ids, only, least, settings.no_repeat_ngram);
    const candidates = bestCandidates(live, logProbs, 2 * beamSize);
    if (candidates.some(({ logProb }) => Number.isNaN(logProb))) throw new Error("The model's probabilities are not numbers.");
    for (const { parent, piece, logProb } of candidates.slice(0, beamSize)) {
      if (piece !== EOS) continue;
      const coverage = beta ? beta * live[parent].covered.reduce((sum, covered) => sum + Math.log(Math.min(Math.max(covered, LEAST_COVERED), 1)), 0) : 0;
      const { ids, rows } = live[parent];
      finished.push({ ids, logProb, score: logProb / lengthFactor(length) + coverage, logProbs: [...live[parent].logProbs, logProbs[parent][EOS]], rows });
    }
    live = candidates.filter(({ piece }) => piece !== EOS).slice(0, beamSize).map(({ parent, piece, logProb }) => {
      const { ids, logProbs: ofPieces, covered, rows } = live[parent];
      return { ids: [...ids, piece], logProb, logProbs: [...ofPieces, logProbs[parent][piece]], state: steps[parent].state, covered, rows };
    });
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

/** log p of each possible next piece of each hypothesis, the new State and the weights. @param {Model} model @param {Live[]} live @param {any} memory @param {Known | null} known */
function stepsOf(model, live, memory, known) {
  const isKnown = (/** @type {Live} */ { ids }) => known !== null && ids.length <= known.ids.length && common(ids, known.ids) === ids.length;
  const others = live.filter((one) => !isKnown(one)), { maps, watch } = recordedDecoder(model);
  const computed = others.length ? step(model, others.map(({ ids }) => ids.at(-1) ?? BOS), others.map(({ state }) => state), memory, watch) : { logProbs: [], states: [] };
  return live.map((one) => {
    const row = others.indexOf(one);
    if (row >= 0 || !known) return { logProbs: computed.logProbs[row], state: computed.states[row], weights: weightsAt(maps, row) };
    const { forced } = known, position = one.ids.length;
    // A copy, because the search marks the pieces that must not come next.
    return { logProbs: forced.logProbs[position].slice(), state: forced.states[position], weights: weightsAt(forced.maps, position) };
  });
}

/** How many pieces two translations have in common at their beginning. @param {number[]} one @param {number[]} other */
function common(one, other) {
  const first = one.findIndex((id, index) => id !== other[index]);
  return first < 0 ? one.length : first;
}

/** @param {import("../models/model.js").Maps} maps @param {number} row @returns {Row} */
const weightsAt = (maps, row) => Object.fromEntries(Object.entries(maps).filter(([site]) => site !== "encoder_self").map(([site, layers]) => [site, layers.map((ofLayer) => ofLayer[row].weights)]));

/** What a hypothesis has attended to after one more step. @param {Pick<Live, "covered" | "rows">} before @param {Row} ofStep */
function attended({ covered, rows }, ofStep) {
  const weight = meanOf(ofStep.cross[ofStep.cross.length - 1]);
  return { covered: covered.map((sum, position) => sum + weight[position]), rows: [...rows, ofStep] };
}

/**
 * The hypothesis after each piece of the given beginning of a translation, and before the first. All are read at once,
 * which takes less time than steps; only the last one has the State to go on from.
 * @param {Model} model @param {import("../models/model.js").Reading} reading @param {number[]} given @param {number} sourceLength @param {Known | null} known @returns {Live[]}
 */
function beginnings(model, reading, given, sourceLength, known) {
  const empty = { ids: [], logProb: 0, logProbs: [], state: null, covered: new Array(sourceLength).fill(0), rows: [] };
  if (!given.length) return [{ ...empty, state: model.start(reading.memory) }];
  const begin = given.slice(0, -1), before = known ? { forced: known.forced, count: common(begin, known.ids) + 1 } : undefined;
  const { logProbs, states, maps } = force(model, reading, begin, before);
  const state = states[given.length - 1];
  /** @type {Live[]} */
  const begun = [empty];
  for (const [row, piece] of given.entries()) {
    const { ids, logProb, logProbs: ofPieces, covered, rows } = begun[row], ofPiece = logProbs[row][piece];
    begun.push({ ids: [...ids, piece], logProb: logProb + ofPiece, logProbs: [...ofPieces, ofPiece], state, ...attended({ covered, rows }, weightsAt(maps, row)) });
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
