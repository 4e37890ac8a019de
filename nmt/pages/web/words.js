// @ts-check
// Pieces of text, and the words that they form.

/** @typedef {"pieces" | "words"} Unit */
/** @typedef {[number, number]} Span the index of a word's first piece, and that of the piece after its last */

const BYTE = /^<0x([0-9A-F]{2})>$/;
const SPACE = "\u2581";

/** The text of pieces. A letter that is missing from the vocabulary appears as its UTF-8 bytes. @param {string[]} pieces */
export function joinPieces(pieces) {
  let text = "", /** @type {number[]} */ bytes = [];
  const flush = () => { text += new TextDecoder().decode(Uint8Array.from(bytes)); bytes = []; };
  for (const piece of pieces) {
    const byte = pieces.length > 1 && BYTE.exec(piece);
    if (byte) bytes.push(parseInt(byte[1], 16));
    else { flush(); text += piece; }
  }
  flush();
  return text.replaceAll(SPACE, " ").trim() || pieces.join("");
}

export const isSpecial = (/** @type {string} */ piece) => piece === "<s>" || piece === "</s>";

/** One span for each piece or word; a special piece is a word of its own. @param {string[]} pieces @param {Unit} unit @returns {Span[]} */
export function spansOf(pieces, unit) {
  if (unit === "pieces") return pieces.map((_, i) => [i, i + 1]);
  const starts = pieces.flatMap((piece, i) => i === 0 || piece.startsWith(SPACE) || isSpecial(piece) || isSpecial(pieces[i - 1]) ? [i] : []);
  return starts.map((start, i) => [start, starts[i + 1] ?? pieces.length]);
}

/** The labels of spans. A piece is shown as it is. @param {string[]} pieces @param {Span[]} spans @param {Unit} unit */
export const labelsOf = (pieces, spans, unit) => unit === "pieces" ? pieces : spans.map(([start, end]) => joinPieces(pieces.slice(start, end)));

/** The text of a sentence without the special pieces at its ends. @param {string[]} pieces */
export function plainText(pieces) {
  return joinPieces(pieces.filter((piece, i) => !(isSpecial(piece) && (i === 0 || i === pieces.length - 1))));
}

/** Whether two lists of labels are the same. @param {string[]} one @param {string[]} other */
export const sameLabels = (one, other) => one.length === other.length && one.every((text, i) => text === other[i]);

/** The sign of a new word, which is drawn pale, and the rest of a piece. @param {string} text @returns {[string, string]} */
export const splitMark = (text) => text.length > 1 && text.startsWith(SPACE) ? [SPACE, text.slice(1)] : ["", text];

/** A piece without the sign of a new word, unless it is nothing else. @param {string} text */
export const withoutMark = (text, space = "") => text.replaceAll(SPACE, space).trim() || text;
