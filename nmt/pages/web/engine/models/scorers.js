// @ts-check
// Scoring functions: score(query, key) of each head. Queries and keys are projected first, and projected keys are kept.
// As nmt/attention/scorers.py, which names the papers.

import { dot, products, rowOf, transposed } from "./vectors.js";

/** @typedef {import("./vectors.js").Vector} Vector */
/** @typedef {import("./weights.js").Weights} Weights */

/**
 * @typedef {object} Scorer
 * @property {number | null} maxKeys the largest number of keys
 * @property {(query: Vector, head: number) => Vector} projectQuery
 * @property {(key: Vector, head: number) => Vector} projectKey
 * @property {(query: Vector, key: Vector, head: number, position: number) => number} score of a projected query and a projected key
 * @property {(key: Vector, head: number, position: number) => Vector} keyVector what the score combines with the projected query
 * @property {(head: number) => Vector | null} vector v of an additive score
 */

/** @type {Scorer} q . k (Luong et al. 2015, section 3.1) */
const DOT = {
  maxKeys: null,
  projectQuery: (query) => query,
  projectKey: (key) => key,
  score: (query, key) => dot(query, key),
  keyVector: (key) => key,
  vector: () => null,
};

/** q . k / sqrt(d), where d is the width of a head (Vaswani et al. 2017, equation 1). @returns {Scorer} */
function scaledDot() {
  return {
    ...DOT,
    projectQuery(query) {
      const scaled = new Float64Array(query), root = Math.sqrt(query.length);
      for (let index = 0; index < scaled.length; index++) scaled[index] /= root;
      return scaled;
    },
  };
}

/** q . W k (Luong et al. 2015, section 3.1). @param {Weights} weights @returns {Scorer} */
function general(weights) {
  const matrices = weights.transposedHeads("weight");
  return { ...DOT, projectKey: (key, head) => products(matrices[head], [key])[0] };
}

/** (W q)_s for the key at position s (Luong et al. 2015, equation 8). @param {Weights} weights @returns {Scorer} */
function location(weights) {
  const matrices = weights.heads("weight");
  const rows = matrices.map((matrix) => Array.from({ length: matrix.rows }, (_, row) => rowOf(matrix, row)));
  return {
    ...DOT,
    maxKeys: matrices[0].rows,
    projectKey: () => new Float64Array(matrices[0].columns),
    score: (query, _, head, position) => dot(query, rows[head][position]),
    keyVector: (_, head, position) => rows[head][position],
  };
}

/** -|q - k|^2 / 2 without -|q|^2 / 2, which cancels in the softmax (Nadaraya 1964; Watson 1964). @returns {Scorer} */
function gaussian() {
  return { ...DOT, score: (query, key) => dot(query, key) - dot(key, key) / 2 };
}

/** -|(q - k) w|^2 / 2 with one w for each head. @param {Weights} weights @returns {Scorer} */
function gaussianLearned(weights) {
  const width = weights.vector("width");
  /** @param {Vector} vector @param {number} head */
  const scaled = (vector, head) => vector.map((entry) => entry * width[head]);
  return { ...gaussian(), projectQuery: scaled, projectKey: scaled };
}

/** 0 for every key: the context is the mean of the values. @returns {Scorer} */
function noScore() {
  return { ...DOT, projectQuery: () => new Float64Array(8), projectKey: () => new Float64Array(8), score: () => 0 };
}

/** v . tanh(W q + U k) (Bahdanau et al. 2015, appendix A.1.2). @param {Weights} weights @returns {Scorer} */
function additive(weights) {
  return additiveOf(weights.transposedHeads("query_weight"), weights.transposedHeads("key_weight"), weights);
}

/** v . tanh(W [q; k]) (Luong et al. 2015, section 3.1): the columns of W for q, and those for k. @param {Weights} weights @param {number} queryDim @returns {Scorer} */
function concat(weights, queryDim) {
  // In the file W is transposed, so these are its first rows and the rest.
  const halves = weights.heads("weight").map(({ rows, columns, values, scales }) => [
    { rows: queryDim, columns, values: values.subarray(0, queryDim * columns), scales, simd: null },
    { rows: rows - queryDim, columns, values: values.subarray(queryDim * columns), scales, simd: null },
  ]);
  return additiveOf(halves.map(([ofQuery]) => transposed(ofQuery)), halves.map(([, ofKey]) => transposed(ofKey)), weights);
}

/** @param {import("./vectors.js").Matrix[]} ofQueries @param {import("./vectors.js").Matrix[]} ofKeys @param {Weights} weights @returns {Scorer} */
function additiveOf(ofQueries, ofKeys, weights) {
  const matrix = weights.matrix("vector");
  const vectors = ofQueries.map((_, head) => rowOf(matrix, head));
  return {
    maxKeys: null,
    projectQuery: (query, head) => products(ofQueries[head], [query])[0],
    projectKey: (key, head) => products(ofKeys[head], [key])[0],
    score(query, key, head) {
      const vector = vectors[head];
      let sum = 0;
      for (let index = 0; index < vector.length; index++) sum += vector[index] * Math.tanh(query[index] + key[index]);
      return sum;
    },
    keyVector: (key) => key,
    vector: (head) => vectors[head],
  };
}

/** The scorer with the name of a class of nmt/attention/scorers.py. @param {string} name @param {Weights} weights @param {number} queryDim the width of a head's query @returns {Scorer} */
export function makeScorer(name, weights, queryDim) {
  /** @type {Record<string, () => Scorer>} */
  const scorers = {
    Dot: () => DOT,
    ScaledDot: scaledDot,
    General: () => general(weights),
    Location: () => location(weights),
    Gaussian: gaussian,
    GaussianLearned: () => gaussianLearned(weights),
    NoScore: noScore,
    Additive: () => additive(weights),
    Concat: () => concat(weights, queryDim),
  };
  return scorers[name]();
}
