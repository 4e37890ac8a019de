// @ts-check
// Attention maps as numbers: a mean over layers and heads, between pieces or between words.

import { labelsOf, sameLabels, spansOf } from "./words.js";

/** @typedef {import("./words.js").Span} Span */
/** @typedef {number | "mean"} Choice a layer or head, counted from 0, or the mean over all */
/**
 * @typedef {object} AttentionMap
 * @property {string[]} rows the labels of the target
 * @property {string[]} columns the labels of the source
 * @property {Span[]} rowSpans the pieces of each row
 * @property {Span[]} columnSpans the pieces of each column
 * @property {number[][]} weights
 * @property {number} most the largest weight
 * @property {[string, string]} [names] what rows and columns are
 * @property {(row: number, column: number) => boolean} [isBlocked] whether the row's step cannot see the column
 * @property {"blocked" | "blockedByItself"} [whyBlocked] the label that says why
 * @property {number[] | null} [centers] of a local window, as a column for each row
 */

/** @type {"mean"} */
export const MEAN = "mean";
export const SITES = ["encoder_self", "decoder_self", "cross"];

/** What can be chosen of several layers or heads. A single one has no mean. @param {number} count @returns {Choice[]} */
export const choicesOf = (count) => count === 1 ? [0] : [MEAN, ...Array(count).keys()];

/** The choice that a page writes as this text. @param {string} text @returns {Choice} */
export const choiceOf = (text) => text === MEAN ? MEAN : Number(text);

/** The layers or heads that a choice stands for. @param {Choice} choice @param {number} count */
export const indicesOf = (choice, count) => choice === MEAN ? [...Array(count).keys()] : [Math.min(choice, count - 1)];

/** @param {number[][]} weights */
export const largest = (weights) => weights.reduce((most, row) => Math.max(most, ...row), 0);

/**
 * The map of the mean over the given layers and heads.
 * @param {(layer: number, head: number, row: number, column: number) => number} weightAt
 * @param {number[]} layers @param {number[]} heads
 * @param {string[]} rows the pieces of the target @param {string[]} columns the pieces of the source
 * @param {import("./words.js").Unit} unit @returns {AttentionMap}
 */
export function mapOf(weightAt, layers, heads, rows, columns, unit) {
  const rowSpans = spansOf(rows, unit), columnSpans = spansOf(columns, unit);
  const pieces = rows.map((_, row) => columns.map((_, column) => {
    let sum = 0;
    for (const layer of layers) for (const head of heads) sum += weightAt(layer, head, row, column);
    return sum / (layers.length * heads.length);
  }));
  // Sums the columns of a word and averages its rows, so that a row keeps its sum.
  const weights = unit === "pieces" ? pieces : rowSpans.map(([top, bottom]) => columnSpans.map(([left, right]) => {
    let sum = 0;
    for (let row = top; row < bottom; row++) for (let column = left; column < right; column++) sum += pieces[row][column];
    return sum / (bottom - top);
  }));
  return {
    rows: labelsOf(rows, rowSpans, unit), columns: labelsOf(columns, columnSpans, unit), rowSpans, columnSpans,
    weights, most: largest(weights),
  };
}

/** The mean entropy of the rows in nats, each divided by its sum; null if no row has weight. @param {number[][]} weights */
export function entropyOf(weights) {
  const sums = weights.map((row) => row.reduce((sum, weight) => sum + weight, 0)), used = weights.filter((_, r) => sums[r] > 0), totals = sums.filter((sum) => sum > 0);
  const entropies = used.map((row, r) => row.reduce((sum, weight) => weight > 0 ? sum - weight / totals[r] * Math.log(weight / totals[r]) : sum, 0));
  return used.length ? entropies.reduce((sum, entropy) => sum + entropy, 0) / used.length : null;
}

/** The weights of a column. @param {AttentionMap} map @param {number} column */
export const columnOf = (map, column) => map.weights.map((row) => row[column]);

/**
 * The first map minus the second; null if their labels differ.
 * @param {AttentionMap | null} first @param {AttentionMap | null} second
 */
export function differenceOf(first, second) {
  if (!first || !second || !sameLabels(first.rows, second.rows) || !sameLabels(first.columns, second.columns)) return null;
  const weights = first.weights.map((row, r) => row.map((weight, c) => weight - second.weights[r][c]));
  return { ...first, weights, most: largest(weights.map((row) => row.map(Math.abs))) };
}

/**
 * The largest of some weights with their labels, at least `least`.
 * @param {number[]} weights @param {string[]} labels @param {number} count @param {number} least
 * @returns {[string, number][]}
 */
export function strongest(weights, labels, count, least) {
  const pairs = weights.map((weight, i) => /** @type {[string, number]} */ ([labels[i], weight]));
  return pairs.sort(([, one], [, other]) => Math.abs(other) - Math.abs(one)).slice(0, count).filter(([, weight]) => Math.abs(weight) >= least);
}

/**
 * A row of weights in which the chosen columns sum to `total`, and the others share the rest in the same proportions, or
 * in those of the first of `instead` where they have any weight. If there is none, the rest is lost.
 * @param {number[]} row @param {number[]} columns @param {number} total @param {number[][]} instead
 */
export function reweighted(row, columns, total, ...instead) {
  const chosen = new Set(columns);
  const sumOf = (/** @type {number[]} */ weights, /** @type {boolean} */ wanted) => weights.reduce((sum, weight, i) => sum + (chosen.has(i) === wanted ? weight : 0), 0);
  const inside = sumOf(row, true), shares = [row, ...instead].find((weights) => sumOf(weights, false) > 0) ?? row;
  const outside = sumOf(shares, false);
  return row.map((weight, i) => chosen.has(i)
    ? (inside > 0 ? weight * total / inside : total / columns.length)
    : (outside > 0 ? shares[i] * (1 - total) / outside : 0));
}
