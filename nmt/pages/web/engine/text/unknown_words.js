// @ts-check
// The words of a text that a run never saw in training. As nmt/insight/unknown_words.py.

const LETTERS = "[\\p{L}\\p{Nl}\\p{No}]+";
const WORD = new RegExp(`${LETTERS}(?:['\u2019-]${LETTERS})*`, "gu");

/** Without case, as Python's casefold: some letters, such as \u017f, have another one in lower case only after upper case, and a final sigma is no letter of its own. @param {string} word */
const folded = (word) => word.toUpperCase().toLowerCase().replaceAll("\u03c2", "\u03c3");

/** Each once, as it is written. @param {Set<string>} known case-folded @param {string} text */
export const unknownWords = (known, text) => [...new Set(text.match(WORD))].filter((word) => !(folded(word).match(WORD) ?? []).every((part) => known.has(part)));
