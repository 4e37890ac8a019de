// @ts-check
// The source sentence once more, behind the field that contains it: its words are shaded by the weights of the row that
// somebody points at. The words of the translation are shaded by the weights of a column.

import { element, make } from "../dom.js";
import { isSpecial, joinPieces, sameLabels, spansOf } from "../words.js";
import { search } from "./answers.js";
import { state } from "./state.js";

/** @typedef {import("../map.js").AttentionMap} AttentionMap */
/** @typedef {import("../words.js").Span} Span */

const LEAST = 0.03; // a weaker shade cannot be told from none

/**
 * For each word of the sentence, its columns, or those of the translation that replaces it; null if words and columns do
 * not match.
 * @param {AttentionMap} map @param {string[]} typedWords
 */
function columnsOfWords({ columns }, typedWords) {
  const spans = spansOf(columns, state.unit === "words" ? "pieces" : "words").filter(([start]) => !isSpecial(columns[start]));
  if (!search.dictionary_words.length) return spans.length === typedWords.length ? spans : null;
  const readWords = spans.map(([start, end]) => joinPieces(columns.slice(start, end)));
  // Of "ice cream" and "ice", the longer one was replaced.
  const replaced = [...search.dictionary_words].sort(([a], [b]) => b.length - a.length);
  /** @type {Span[]} */
  const spansOfWords = [];
  let next = 0;
  while (spansOfWords.length < typedWords.length) {
    const rest = typedWords.slice(spansOfWords.length);
    let [typed, read] = [rest[0].normalize() === readWords[next] ? 1 : 0, 1];
    for (const [phrase, translation] of replaced) {
      const count = phrase.split(" ").length, text = rest.slice(0, count).join(" ").normalize();
      const expected = text.replace(phrase, () => translation).split(" ");
      if (!text.includes(phrase) || !sameLabels(readWords.slice(next, next + expected.length), expected)) continue;
      [typed, read] = [count, expected.length];
      break;
    }
    if (!typed) return null;
    const [start] = spans[next], [, end] = spans[next + read - 1];
    spansOfWords.push(...Array.from({ length: typed }, () => /** @type {Span} */ ([start, end])));
    next += read;
  }
  return next === spans.length ? spansOfWords : null;
}

/**
 * @param {AttentionMap | undefined} map the run's own, if somebody points at it
 * @param {number | null} row @param {number | null} column
 * @param {number[] | undefined} rowWords the word of the translation that each row belongs to
 */
export function showEcho(map, row, column, rowWords) {
  const { text, echo, answer } = element, parts = /** @type {string} */ (text.value).split(/(\s+)/).filter(Boolean), words = parts.filter((part) => part.trim());
  const spans = map && text.value === state.text && state.site !== "decoder_self" ? columnsOfWords(map, words) : null;
  for (const word of /** @type {Iterable<HTMLElement>} */ (answer.querySelectorAll(".shaded"))) shade(word, 0);
  if (!map || !spans || (row === null && column === null) || (row ?? 0) >= map.rows.length) { echo.replaceChildren(); return; }
  let next = 0;
  echo.replaceChildren(...parts.map((part) => {
    if (!part.trim()) return part;
    const [start, end] = spans[next++], item = make("span", { "data-column": start }, part);
    if (row !== null) shade(item, map.weights[row].slice(start, end).reduce((sum, weight) => sum + weight, 0));
    item.classList.toggle("pointed", column !== null && start <= column && column < end);
    return item;
  }));
  if (row !== null || column === null || !rowWords || state.site !== "cross") return;
  for (const word of /** @type {NodeListOf<HTMLElement>} */ (answer.querySelectorAll("[data-word]"))) {
    const weights = map.weights.filter((_, r) => rowWords[r] === Number(word.dataset.word)).map((weights) => weights[column]);
    shade(word, Math.max(...weights, 0));
  }
}

/** @param {HTMLElement} word @param {number} weight */
function shade(word, weight) {
  word.classList.toggle("shaded", weight >= LEAST);
  word.style.setProperty("--share", `${(100 * Math.min(weight, 1)).toFixed(0)}%`);
}
