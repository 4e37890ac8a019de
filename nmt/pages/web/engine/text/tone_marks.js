// @ts-check
// Where Vietnamese syllables in oa, oe and uy carry their tone mark: hòa in the old style, hoà in the new one.
// As nmt/text/tone_marks.py.

/** @typedef {"old" | "new"} Style */

const ONSETS = "b c ch d đ g gh gi h k kh l m n ng ngh nh p ph r s t th tr v x";
const TONES = "\u0300\u0301\u0309\u0303\u0323";
// Letters, and numbers other than digits, as in Python's [^\W\d_].
const LETTER = "[\\p{L}\\p{Nl}\\p{No}]";

/** [old, new] of each rime, in every mix of capital and small letters. @returns {[string, string][]} */
function rimes() {
  const cases = (/** @type {string} */ letter) => [letter, letter.toUpperCase()];
  return ["oa", "oe", "uy"].flatMap((vowels) => [...TONES].flatMap((tone) =>
    cases(vowels[0]).flatMap((first) => cases(vowels[1]).map((second) => /** @type {[string, string]} */ ([`${first}${tone}${second}`.normalize("NFC"), `${first}${second}${tone}`.normalize("NFC")])))));
}

/** The rimes of the other style, and what they become in this one. @type {Record<Style, Map<string, string>>} */
const OTHER = { new: new Map(rimes()), old: new Map(rimes().map(([old, newer]) => [newer, old])) };

/** Whole syllables, because both styles write hoàn, and other languages have words such as Chloé. @param {Style} style */
function syllables(style) {
  // Python also takes the long s for an s where it ignores case.
  const letter = (/** @type {string} */ small) => `[${small}${small.toUpperCase()}${small === "s" ? "\u017f" : ""}]`;
  const onsets = ONSETS.split(" ").sort((a, b) => b.length - a.length).map((onset) => [...onset].map(letter).join(""));
  return new RegExp(`(?<!${LETTER})(${onsets.join("|")})?(${[...OTHER[style].keys()].join("|")})(?!${LETTER})`, "gu");
}

const PATTERNS = { new: syllables("new"), old: syllables("old") };

/** The NFC text with the tone marks of Vietnamese syllables in one style. @param {string} text @param {Style} style */
export function withToneMarks(text, style) {
  return text.replace(PATTERNS[style], (_, onset, rime) => `${onset ?? ""}${OTHER[style].get(rime)}`);
}
