// @ts-check
// How well links between words agree with a known alignment. As nmt/maps/words.py and links.py.

import { spansOf } from "../../words.js";

/** A source word and a target word, from 0. @typedef {number[]} Link */

/**
 * Attention of target words to source words: summed over the pieces of a source word, averaged over those of a target
 * word. The row and the column of EOS are dropped.
 * @param {number[][]} weights @param {string[]} source @param {string[]} target pieces without EOS
 */
export function wordMap(weights, source, target) {
  const columns = spansOf(source, "words");
  return spansOf(target, "words").map(([from, to]) => columns.map(([start, end]) => {
    let sum = 0;
    for (let row = from; row < to; row++) for (let column = start; column < end; column++) sum += weights[row][column];
    return sum / (to - from);
  }));
}

/** Links each target word to the source word with the largest weight (Luong et al. 2015, section 5.4). @param {number[][]} weights @returns {Link[]} */
export const argmaxLinks = (weights) => weights.flatMap((row, j) => Math.max(...row) > 0 ? [[row.indexOf(Math.max(...row)), j]] : []);

/** Links each target word to the source word at the same relative position. @param {number} sourceWords @param {number} targetWords @returns {Link[]} */
export function diagonalLinks(sourceWords, targetWords) {
  const stretch = (sourceWords - 1) / Math.max(1, targetWords - 1);
  return Array.from({ length: targetWords }, (_, j) => [Math.floor(j * stretch + 0.5), j]);
}

/**
 * Alignment error rate 1 - (|A n S| + |A n P|) / (|A| + |S|), precision |A n P| / |A| and recall |A n S| / |S| of the
 * links A, where S are the sure links and P the possible ones, which include S (Och & Ney 2003).
 * @param {Link[]} links @param {Link[]} sure @param {Link[]} possible
 */
export function rates(links, sure, possible) {
  const among = (/** @type {Link[]} */ gold) => links.filter(([i, j]) => gold.some(([k, l]) => i === k && j === l)).length;
  const inSure = among(sure), inPossible = among(possible);
  return {
    aer: 1 - (inSure + inPossible) / (links.length + sure.length),
    precision: links.length ? inPossible / links.length : 1,
    recall: sure.length ? inSure / sure.length : 1,
  };
}
