// @ts-check
// The steps from a query and a key to a weight and to the context, as numbers: what the picture of a cell draws.

import { threshold } from "../engine/models/normalizers.js";

/** @typedef {import("../engine/interface.js").Cells} Cells */
/**
 * @typedef {object} Steps
 * @property {number} keys the number of keys
 * @property {number} shown the key whose products are drawn
 * @property {{ symbol: string, part: string, name: string, values: number[] }[]} strips the vectors of that key's score, and at last its products; empty if every score is 0
 * @property {number[] | null} prior g of the window
 * @property {number[]} inputs what the normalizer receives
 * @property {number} highest of the allowed inputs, which the softmax subtracts first
 * @property {number[]} shares what the normalizer divides: exp(input − highest), or for sparsemax max(input − τ, 0)
 * @property {number} total the sum of the shares, or for sparsemax τ
 * @property {number} sum of the weights
 */

const sumOf = (/** @type {number[]} */ values) => values.reduce((sum, value) => sum + value, 0);

/** The vectors and products of a score. @param {Cells} cell @param {number} key @returns {Steps["strips"]} */
function stripsOf(cell, key) {
  const { scorer, query: q, vector: va } = cell, k = cell.keys[key];
  if (scorer === "NoScore") return [];
  const both = [{ symbol: "q", part: "q", name: "q", values: q }, { symbol: "k", part: "k", name: "k", values: k }];
  if (va) {
    const bent = q.map((value, m) => Math.tanh(value + k[m]));
    return [...both, { symbol: "e", part: "tanh", name: "tanh", values: bent }, { symbol: "va", part: "va", name: "vₐ", values: va },
      { symbol: "e", part: "product", name: "vₐ·tanh", values: bent.map((value, m) => value * va[m]) }];
  }
  const isGaussian = scorer.startsWith("Gaussian");
  return [...both, { symbol: "e", part: "product", name: isGaussian ? "q·k−k²⁄2" : "q·k", values: q.map((value, m) => value * k[m] - (isGaussian ? k[m] ** 2 / 2 : 0)) }];
}

/** @param {Cells} cell @param {number | null} column the key to show, by default the one with the largest weight @returns {Steps} */
export function stepsOf(cell, column) {
  const { keys: { length: keys }, log_prior: prior } = cell;
  const largest = cell.weights.indexOf(Math.max(...cell.weights)), shown = column !== null && column < keys ? column : Math.max(largest, 0);
  const inputs = cell.scores.map((score, key) => prior && cell.renormalized ? score + prior[key] : score);
  const allowed = inputs.filter((_, key) => cell.allowed[key]), highest = allowed.length ? Math.max(...allowed) : 0;
  const isSparse = cell.normalizer === "Sparsemax", tau = threshold(allowed);
  const shares = inputs.map((input, key) => !cell.allowed[key] ? 0 : isSparse ? Math.max(input - tau, 0) : Math.exp(input - highest));
  return {
    keys, shown, strips: stripsOf(cell, shown), prior: prior && prior.map(Math.exp), inputs, highest, shares,
    total: isSparse ? tau : sumOf(shares), sum: sumOf(cell.weights),
  };
}

/**
 * Some positions of long vectors: in each of the equal parts, that of the value furthest from 0.
 * @param {number[]} values @param {number} most
 */
export function picked(values, most) {
  const count = Math.min(values.length, most);
  return Array.from({ length: count }, (_, part) => {
    const start = Math.floor(part * values.length / count), end = Math.floor((part + 1) * values.length / count);
    let best = start;
    for (let m = start; m < end; m++) if (Math.abs(values[m]) > Math.abs(values[best])) best = m;
    return best;
  });
}
