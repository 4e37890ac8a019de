// @ts-check
// Source words that are replaced by their translations. As nmt/text/dictionary.py.

const LETTERS = "[\\p{L}\\p{Nl}\\p{No}]+", IN_WORD = "\\p{L}\\p{N}_";
const BEFORE = `(?<![${IN_WORD}@\\/\\\\#&=?%:~+<\\{$\\p{M}])(?<!(?<!\\.)\\.)(?<!(?<!-)-)(?<![${IN_WORD}]['\u2019])`;
const AFTER = `(?![${IN_WORD}@\\/\\\\=%~+>\\}\\p{M}]|-(?!-)|['\u2019][${IN_WORD}]|[.:?&#][${IN_WORD}]|:\\/\\/)`;
const WHOLE_WORD = new RegExp(`${BEFORE}${LETTERS}(?:[-'\u2019]${LETTERS})*${AFTER}`, "gu");
const IN_ADDRESS = "0-9A-Za-z_\u00c0-\u058f\u1e00-\u1fff";
const ADDRESS = new RegExp(`(?<![${IN_ADDRESS}])(?:(?:https?|ftp):\\/\\/|mailto:|www\\.|(?<![.+\\-])[${IN_ADDRESS}.+\\-]+@[${IN_ADDRESS}][${IN_ADDRESS}\\-]*\\.[${IN_ADDRESS}])[!-~\u00a1-\u058f\u1e00-\u1fff]*`, "giu");

/** A part of a text, and the translation that replaces it. @typedef {{ start: number, end: number, translation: string }} Replacement */

export class Dictionary {
  /** @param {Record<string, string>} translations of words and phrases */
  constructor(translations) {
    this.translations = new Map(Object.entries(translations));
    /** The numbers of words of the phrases that begin with a word. @type {Map<string, Set<number>>} */
    this.lengths = new Map();
    for (const key of this.translations.keys()) {
      const words = key.split(" "), numbers = this.lengths.get(words[0]) ?? new Set();
      this.lengths.set(words[0], numbers.add(words.length));
    }
  }

  /** The normalized text, with the words and phrases of the dictionary replaced. @param {string} text */
  replaced(text) {
    return this.#rewritten(text, ({ translation }) => translation);
  }

  /** The normalized text with spaces in place of the words and phrases of the dictionary. @param {string} text */
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
    const spans = wholeWords(text), beginning = Math.max(0, text.search(/\p{L}/u));
    for (let index = 0; index < spans.length; index++) {
      const { start, end } = spans[index], first = withPlainApostrophes(text.slice(start, end)), begins = start === beginning;
      const lengths = new Set([first, ...begins ? [inLowerCase(first)] : []].flatMap((form) => [...this.lengths.get(form) ?? []]));
      for (const number of [...lengths].sort((a, b) => b - a)) {
        const { end: last } = spans[Math.min(index + number, spans.length) - 1];
        const translation = this.#translation(withPlainApostrophes(text.slice(start, last)), begins);
        if (translation === undefined) continue;
        replacements.push({ start, end: last, translation });
        index += number - 1;
        break;
      }
    }
    return replacements;
  }

  /** What replaces a phrase; `begins` says whether the text begins with it. @param {string} phrase @param {boolean} begins */
  #translation(phrase, begins) {
    const translation = this.translations.get(phrase);
    if (translation !== undefined || !begins) return translation;
    const small = this.translations.get(inLowerCase(phrase));
    if (small === undefined) return undefined;
    const [initial, ...others] = small;
    return initial.toUpperCase() + others.join("");
  }
}

/** The phrase with its first letter in lower case. @param {string} phrase */
function inLowerCase(phrase) {
  const [first, ...others] = phrase;
  return first.toLowerCase() + others.join("");
}

/** Where the words of a normalized text begin and end, except for parts of identifiers, paths and addresses. @param {string} text */
function wholeWords(text) {
  // A word next to @ is not whole, so nothing in an address matches.
  const plain = text.replace(ADDRESS, (address) => "@".repeat(address.length));
  return [...plain.matchAll(WHOLE_WORD)].map(({ 0: word, index }) => ({ start: index, end: index + word.length }));
}

/** @param {string} text */
const withPlainApostrophes = (text) => text.replaceAll("\u2019", "'");
