// @ts-check
// Normalizers turn scores into weights. Blocked keys get exactly 0; a query without allowed keys gets all zeros.
// As nmt/attention/normalizers.py.

/** @typedef {(scores: number[], allowed: boolean[]) => number[]} Normalizer */

/** a_i = exp(score_i) / sum_j exp(score_j) (Bahdanau et al. 2015, equation 6; Luong et al. 2015, equation 7). @type {Normalizer} */
function softmax(scores, allowed) {
  let highest = -Infinity, sum = 0;
  for (let index = 0; index < scores.length; index++) if (allowed[index] && scores[index] > highest) highest = scores[index];
  const powers = scores.map((score, index) => allowed[index] ? Math.exp(score - highest) : 0);
  for (const power of powers) sum += power;
  return sum ? powers.map((power) => power / sum) : powers;
}

/** The tau of sparsemax (Martins & Astudillo 2016, algorithm 1). @param {number[]} scores */
export function threshold(scores) {
  const sorted = [...scores].sort((a, b) => b - a);
  // k is the largest number for which 1 + k z_k > z_1 + ... + z_k, and tau = (z_1 + ... + z_k - 1) / k.
  let sum = 0, tau = 0;
  for (const [index, score] of sorted.entries()) {
    sum += score;
    if (1 + (index + 1) * score <= sum) break;
    tau = (sum - 1) / (index + 1);
  }
  return tau;
}

/** a_i = max(score_i - tau, 0) with tau such that the weights sum to 1 (Martins & Astudillo 2016, proposition 1). @type {Normalizer} */
function sparsemax(scores, allowed) {
  const tau = threshold(scores.filter((_, index) => allowed[index]));
  return scores.map((score, index) => allowed[index] ? Math.max(score - tau, 0) : 0);
}

/** @type {Record<string, Normalizer>} by the name of its class */
export const NORMALIZERS = { Softmax: softmax, Sparsemax: sparsemax };
