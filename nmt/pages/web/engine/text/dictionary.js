// @ts-check
// Words of the source that a run reads in translation. As nmt/text/dictionary.py.

const LETTERS = "[\\p{L}\\p{Nl}\\p{No}]+", ALPHANUMERIC = "[\\p{L}\\p{N}]", IN_WORD = "\\p{L}\\p{N}_";
const WHOLE_WORD = new RegExp(`(?<![${IN_WORD}@.\\/\\\\#&=?%:~+\\-])(?<![${IN_WORD}]['\u2019])${LETTERS}(?:[-'\u2019]${LETTERS})*(?![${IN_WORD}@\\/\\\\=%~+\\-]|['\u2019][${IN_WORD}]|[.:][${IN_WORD}]|:\\/\\/)`, "gu");
const FIRST = new RegExp(ALPHANUMERIC, "u");

/** A part of a text, and the translation that replaces it. @typedef {{ start: number, end: number, translation: string }} Replacement */

export class Dictionary {
  /** @param {Record<string, string>} translations of words and phrases */
  constructor(translations) {
    this.translations = new Map(Object.entries(translations));
    this.mostWords = Math.max(0, ...[...this.translations.keys()].map((key) => key.split(" ").length));
  }

  /** The normalized text, with its words and phrases in the dictionary replaced. @param {string} text */
  replaced(text) {
    return this.#rewritten(text, ({ translation }) => translation);
  }

  /** The normalized text with spaces instead of its words and phrases in the dictionary. @param {string} text */
  removed(text) {
    return this.#rewritten(text, () => " ");
  }

  /** What is replaced in a normalized text, each word and phrase once, with its translation. @param {string} text @returns {[string, string][]} */
  found(text) {
    return [...new Map(this.replacements(text).map(({ start, end, translation }) => [text.slice(start, end), translation]))];
  }

  /** @param {string} text @param {(replacement: Replacement) => string} written */
  #rewritten(text, written) {
    let copied = 0, result = "";
    for (const replacement of this.replacements(text)) {
      result += text.slice(copied, replacement.start) + written(replacement);
      copied = replacement.end;
    }
    return result + text.slice(copied);
  }

  /** What is replaced in a normalized text, in order. @param {string} text */
  replacements(text) {
    /** @type {Replacement[]} */
    const replacements = [];
    if (!this.translations.size) return replacements;
    const spans = [...text.matchAll(WHOLE_WORD)].map(({ 0: word, index }) => ({ start: index, end: index + word.length }));
    const beginning = Math.max(0, text.search(FIRST));
    for (let index = 0; index < spans.length; index++) {
      const { start } = spans[index];
      for (let words = Math.min(this.mostWords, spans.length - index); words > 0; words--) {
        const { end } = spans[index + words - 1];
        const translation = this.#translation(text.slice(start, end), start === beginning);
        if (translation === undefined) continue;
        replacements.push({ start, end, translation });
        index += words - 1;
        break;
      }
    }
    return replacements;
  }

  /** What replaces a phrase; `begins` says whether it is at the beginning of the text. @param {string} phrase @param {boolean} begins */
  #translation(phrase, begins) {
    const translation = this.translations.get(phrase);
    if (translation !== undefined || !begins) return translation;
    const [first, ...rest] = phrase;
    const small = this.translations.get(first.toLowerCase() + rest.join(""));
    if (small === undefined) return undefined;
    const [initial, ...others] = small;
    return initial.toUpperCase() + others.join("");
  }
}
