// @ts-check
// Attention = scorer + window + normalizer: o = sum_i a_i v_i, a = normalizer(score(q, k_1), ..., score(q, k_n)).
// As nmt/attention/attention.py and multihead.py.

import { NORMALIZERS } from "./normalizers.js";
import { makeScorer } from "./scorers.js";
import { joined, linear, splitInto, weightedSum } from "./vectors.js";
import { makeWindow } from "./windows.js";

/** @typedef {import("./vectors.js").Vector} Vector */
/** @typedef {import("./weights.js").Weights} Weights */
/** @typedef {import("./windows.js").Visible} Visible */
/** @typedef {import("./windows.js").Asking} Asking */

/** The classes at a site, and what they were made with. @typedef {{ scorer: string, normalizer: string, window: { kind: string, half_width?: number, renormalize?: boolean } }} About */
/** Keys, projected by the scorer, and values, by head and position. @typedef {{ keys: Vector[][], values: Vector[][] }} KeysValues */
/** New weights for all heads of one query. @typedef {(weights: number[][], visible: Visible[], position: number) => number[][]} Edit */
/** What one query computed, by head. @typedef {{ queries: Vector[], scores: number[][], visible: Visible[], weights: number[][], contexts: Vector[], memory: KeysValues }} Attended */
/** @typedef {(attended: Attended) => void} Watch */

export class Attention {
  /** @param {Weights} weights @param {About} about @param {number} heads @param {number} queryDim the width of a head's query */
  constructor(weights, about, heads, queryDim) {
    this.heads = heads;
    this.about = about;
    this.scorer = makeScorer(about.scorer, weights.of("scorer"), queryDim);
    this.window = makeWindow(about.window, weights.of("window"), heads);
    this.normalizer = about.normalizer;
    this.temperature = 1;
    /** @type {Edit[]} */
    this.edits = [];
  }

  /** The contexts of each head for one query, given by head. @param {Vector[]} queries @param {KeysValues} memory @param {Asking} asking @param {Watch} [watch] */
  attend(queries, memory, asking, watch) {
    const { scorer, temperature } = this;
    const length = memory.keys[0].length;
    if (scorer.maxKeys !== null && length > scorer.maxKeys) throw new Error(`The scorer has weights for ${scorer.maxKeys} positions, but there are ${length}; shorten the sentence.`);
    const visible = this.window.look(length, asking);
    const projected = queries.map((query, head) => scorer.projectQuery(query, head));
    const scores = projected.map((query, head) => memory.keys[head].map((key, position) => scorer.score(query, key, head, position)));
    let weights = scores.map((ofHead, head) => {
      const { allowed, logPrior, renormalized } = visible[head];
      const changed = temperature === 1 && !(logPrior && renormalized) ? ofHead : ofHead.map((score, key) => (score + (logPrior && renormalized ? logPrior[key] : 0)) / temperature);
      const normalized = NORMALIZERS[this.normalizer](changed, allowed);
      return logPrior && !renormalized ? normalized.map((weight, key) => weight * Math.exp(logPrior[key])) : normalized;
    });
    for (const edit of this.edits) weights = edit(weights, visible, asking.position);
    const width = memory.values[0][0]?.length ?? 0;
    const contexts = weights.map((ofHead, head) => weightedSum(ofHead, memory.values[head], width));
    watch?.({ queries: projected, scores, visible, weights, contexts, memory });
    return contexts;
  }
}

/** Concat(head_1 .. head_h) W_O with head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V) (Vaswani et al. 2017, section 3.2.2). */
export class MultiHeadAttention {
  /** @param {Weights} weights @param {About} about @param {number} heads */
  constructor(weights, about, heads) {
    this.query = weights.linear("query"); // W^Q of all heads, one below the other
    this.key = weights.linear("key"); // W^K
    this.value = weights.linear("value"); // W^V
    this.output = weights.linear("output"); // W_O
    this.attention = new Attention(weights.of("attention"), about, heads, this.query.weight.rows / heads);
  }

  /** The keys and values of some positions. @param {Vector[]} inputs @returns {KeysValues} */
  project(inputs) {
    const { heads, scorer } = this.attention;
    const keys = linear(this.key, inputs).map((key) => splitInto(key, heads));
    const values = linear(this.value, inputs).map((value) => splitInto(value, heads));
    return byHead(heads, (head) => keys.map((key) => scorer.projectKey(key[head], head)), (head) => values.map((value) => value[head]));
  }

  /** What each input attends to: its own memory, seen from its position. @param {Vector[]} inputs @param {KeysValues[]} memories @param {number[]} positions @param {Watch} [watch] */
  attend(inputs, memories, positions, watch) {
    const contexts = linear(this.query, inputs).map((query, index) => {
      const asking = { state: inputs[index], position: positions[index] };
      return joined(...this.attention.attend(splitInto(query, this.attention.heads), memories[index], asking, watch));
    });
    return linear(this.output, contexts);
  }
}

/** One head without projections, as in the papers on recurrent models: the values are the inputs themselves. */
export class SingleHeadAttention {
  /** @param {Weights} weights @param {About} about @param {number} queryDim */
  constructor(weights, about, queryDim) {
    this.attention = new Attention(weights.of("attention"), about, 1, queryDim);
  }

  /** @param {Vector[]} inputs @returns {KeysValues} */
  project(inputs) {
    return { keys: [inputs.map((input) => this.attention.scorer.projectKey(input, 0))], values: [inputs] };
  }

  /** @param {Vector[]} inputs @param {KeysValues[]} memories @param {number[]} positions @param {Watch} [watch] */
  attend(inputs, memories, positions, watch) {
    return inputs.map((state, index) => this.attention.attend([state], memories[index], { state, position: positions[index] }, watch)[0]);
  }
}

/** A SingleHeadAttention for one head, otherwise a MultiHeadAttention. @param {Weights} weights @param {About} about @param {number} heads @param {number} queryDim */
export function withHeads(weights, about, heads, queryDim) {
  return heads === 1 ? new SingleHeadAttention(weights, about, queryDim) : new MultiHeadAttention(weights, about, heads);
}

/** The keys and values of the first positions, and of the next ones. @param {KeysValues} first @param {KeysValues} next @returns {KeysValues} */
export function appended(first, next) {
  return byHead(first.keys.length, (head) => [...first.keys[head], ...next.keys[head]], (head) => [...first.values[head], ...next.values[head]]);
}

/** @param {number} heads @param {(head: number) => Vector[]} keys @param {(head: number) => Vector[]} values @returns {KeysValues} */
export function byHead(heads, keys, values) {
  const every = Array.from({ length: heads }, (_, head) => head);
  return { keys: every.map(keys), values: every.map(values) };
}
