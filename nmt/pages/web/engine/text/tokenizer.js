// @ts-check
// SentencePiece (Kudo & Richardson 2018): text to the ids of pieces, with a byte-pair or a unigram model whose unknown
// characters are spelled in bytes. Equal to the library for models that nmt/text/tokenizer.py trains.

import { withToneMarks } from "./tone_marks.js";

/**
 * @typedef {object} Vocabulary
 * @property {"bpe" | "unigram"} kind
 * @property {string[]} pieces by id
 * @property {number[]} scores in float32: log-probabilities (unigram), or minus the rank of the merge (bpe)
 * @property {string} types a letter for each piece: n(ormal), b(yte), c(ontrol), u(nknown)
 * @property {"old" | "new" | null} tone_marks
 */

const SPACE = "\u2581";
const UNKNOWN_PENALTY = 10;

export class Tokenizer {
  /** @param {Vocabulary} vocabulary */
  constructor({ kind, pieces, scores, types, tone_marks: toneMarks }) {
    this.list = pieces;
    this.scores = scores;
    this.types = types;
    this.toneMarks = toneMarks;
    this.segment = kind === "bpe" ? bytePairs : mostLikely;
    /** @type {Map<string, number>} */
    this.ids = new Map();
    this.bytes = new Array(256).fill(1);
    this.characters = new Set([" "]);
    this.longest = 1;
    this.lowest = Infinity;
    for (const [id, piece] of pieces.entries()) {
      if (types[id] === "b") this.bytes[parseInt(piece.slice(3, 5), 16)] = id;
      if (types[id] !== "n") continue;
      this.ids.set(piece, id);
      const characters = [...piece];
      for (const character of characters) this.characters.add(character);
      this.longest = Math.max(this.longest, characters.length);
      this.lowest = Math.min(this.lowest, scores[id]);
    }
  }

  /** The normalized text in the tokenizer's style of tone marks. @param {string} text */
  respelled(text) { return this.toneMarks ? withToneMarks(text, this.toneMarks) : text; }

  /** The ids of the pieces of a normalized line, without BOS and EOS. @param {string} text */
  encode(text) {
    if (!text) return [];
    return this.segment(this, [...`${SPACE}${this.respelled(text).replaceAll(" ", SPACE)}`]).flatMap((piece) => {
      const id = this.ids.get(piece);
      return id === undefined ? [...new TextEncoder().encode(piece)].map((byte) => this.bytes[byte]) : [id];
    });
  }

  /** The characters of a text that occur in no piece, each once. @param {string} text */
  unknownIn(text) { return [...new Set(text)].filter((character) => !this.characters.has(character)).join(""); }

  /** The pieces of ids. @param {number[]} ids */
  pieces(ids) { return ids.map((id) => this.list[id]); }

  /** The text of ids; control pieces are dropped, and bytes that are no UTF-8 become U+FFFD. @param {number[]} ids */
  decode(ids) {
    let text = "", begun = false;
    /** @type {number[]} */
    let bytes = [];
    for (const id of [...ids, -1]) { // -1 ends the last bytes
      if (this.types[id] === "c") continue;
      if (this.types[id] === "b") {
        bytes.push(parseInt(this.list[id].slice(3, 5), 16));
        continue;
      }
      if (bytes.length) begun = true;
      text += utf8(bytes);
      bytes = [];
      if (id === -1) continue;
      const piece = this.types[id] === "u" ? " \u2047 " : this.list[id];
      // The text begins with a space that is not part of it.
      text += (!begun && piece.startsWith(SPACE) ? piece.slice(1) : piece).replaceAll(SPACE, " ");
      begun = true;
    }
    return text;
  }
}

/**
 * Merges the neighbors with the highest score, the leftmost first, until no pair is a piece (Sennrich et al. 2016).
 * @param {Tokenizer} tokenizer @param {string[]} characters
 */
function bytePairs({ ids, scores }, characters) {
  const symbols = characters.map((text, index) => ({ text, before: index - 1, after: index + 1 }));
  /** @typedef {{ left: number, right: number, score: number, text: string }} Pair */
  // A heap with the best pair on top.
  /** @type {Pair[]} */
  const heap = [];
  const better = (/** @type {Pair} */ a, /** @type {Pair} */ b) => a.score > b.score || (a.score === b.score && a.left < b.left);
  /** @param {number} left @param {number} right */
  function add(left, right) {
    if (left < 0 || right >= symbols.length) return;
    const text = symbols[left].text + symbols[right].text;
    const id = ids.get(text);
    if (id === undefined) return;
    let node = heap.length;
    heap.push({ left, right, score: scores[id], text });
    for (let parent; node && better(heap[node], heap[parent = (node - 1) >> 1]); node = parent) [heap[node], heap[parent]] = [heap[parent], heap[node]];
  }
  function take() {
    const [best] = heap, last = /** @type {Pair} */ (heap.pop());
    if (!heap.length) return best;
    heap[0] = last;
    for (let node = 0; ;) {
      const [left, right] = [2 * node + 1, 2 * node + 2];
      let top = node;
      if (left < heap.length && better(heap[left], heap[top])) top = left;
      if (right < heap.length && better(heap[right], heap[top])) top = right;
      if (top === node) return best;
      [heap[node], heap[top]] = [heap[top], heap[node]];
      node = top;
    }
  }
  for (let index = 1; index < symbols.length; index++) add(index - 1, index);
  while (heap.length) {
    const { left, right, text } = take();
    // Either side may have been merged since.
    if (!symbols[left].text || !symbols[right].text || symbols[left].text + symbols[right].text !== text || symbols[left].after !== right) continue;
    const { after } = symbols[right];
    symbols[left] = { text, before: symbols[left].before, after };
    symbols[right].text = "";
    if (after < symbols.length) symbols[after].before = left;
    add(symbols[left].before, left);
    add(left, after);
  }
  return symbols.filter(({ text }) => text).map(({ text }) => text);
}

/**
 * The segmentation with the highest sum of scores (Viterbi; Kudo 2018). A character without a piece costs 10 more than
 * the least likely piece. Sums are rounded to float32, as in the library, so that ties are decided alike.
 * @param {Tokenizer} tokenizer @param {string[]} characters
 */
function mostLikely({ ids, scores, longest, lowest }, characters) {
  const unknown = Math.fround(lowest - UNKNOWN_PENALTY);
  const best = new Float32Array(characters.length + 1);
  const starts = new Int32Array(characters.length + 1).fill(-1);
  for (let start = 0; start < characters.length; start++) {
    let piece = "", single = false;
    for (let end = start + 1; end <= Math.min(start + longest, characters.length); end++) {
      piece += characters[end - 1];
      const id = ids.get(piece);
      if (id === undefined) continue;
      if (end === start + 1) single = true;
      keep(start, end, scores[id]);
    }
    if (!single) keep(start, start + 1, unknown);
  }
  /** @param {number} start @param {number} end @param {number} score */
  function keep(start, end, score) {
    const sum = Math.fround(best[start] + score);
    if (starts[end] !== -1 && sum <= best[end]) return;
    best[end] = sum;
    starts[end] = start;
  }
  const pieces = [];
  for (let end = characters.length; end > 0; end = starts[end]) pieces.unshift(characters.slice(starts[end], end).join(""));
  return pieces;
}

/** The text of bytes; each byte that does not belong to a character becomes U+FFFD. @param {number[]} bytes */
function utf8(bytes) {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let text = "";
  for (let index = 0; index < bytes.length;) {
    const first = bytes[index];
    const length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    try {
      text += decoder.decode(Uint8Array.from(bytes.slice(index, index + length)));
      index += length;
    } catch {
      text += "\ufffd";
      index += 1;
    }
  }
  return text;
}
