// The weights of the selected map, for one layer and head or the mean over several, between pieces or between words.

import { Matrix, mergeWords } from "/page/matrix.js";
import { isSpecial, tokensOf } from "/page/pieces.js";
import { MEAN, state } from "/page/state.js";
import { label } from "/page/text.js";

// For each word, the indices of its first piece and of the piece after its last; a special piece is a separate word.
function wordSpans(pieces) {
  const starts = pieces.flatMap((piece, i) => i === 0 || piece.startsWith("\u2581") || isSpecial(piece) || isSpecial(pieces[i - 1]) ? [i] : []);
  return starts.map((start, i) => [start, starts[i + 1] ?? pieces.length]);
}

const indices = (choice, count) => choice === MEAN ? [...Array(count).keys()] : [Math.min(choice, count - 1)];

// The weights between pieces as a Matrix.
function selectedWeights(found, layer, head) {
  const layers = indices(layer, found.weights.length), heads = indices(head, found.weights[0].length);
  const pieces = new Matrix(found.outputs.length, found.columns.length);
  for (const each of layers) {
    for (const one of heads) {
      found.weights[each][one].forEach((row, r) => row.forEach((weight, c) => {
        pieces.weights[r * pieces.columns + c] += weight / (layers.length * heads.length);
      }));
    }
  }
  return pieces;
}

// Makes a map from the answer {outputs, columns, weights}: its labels, its weights, and the pieces of each row and
// column. A cell of decoder self-attention is blocked if its piece comes after the pieces that the row has read.
export function mapOf(found, { layer = state.layer, head = state.head, unit = state.unit } = {}) {
  if (!found) return null;
  const pieces = selectedWeights(found, layer, head);
  const spansOf = (sequence) => unit === "words" ? wordSpans(sequence) : sequence.map((_, i) => [i, i + 1]);
  const rowSpans = spansOf(found.outputs), columnSpans = spansOf(found.columns);
  const merged = mergeWords(pieces, rowSpans, columnSpans);
  const named = (sequence, spans) => tokensOf({ pieces: sequence, words: spans }, unit);
  return {
    rows: named(found.outputs, rowSpans), columns: named(found.columns, columnSpans), rowSpans, columnSpans,
    weights: rowSpans.map((_, row) => merged.row(row)), most: merged.most(),
    names: [label(state.site === "encoder_self" ? "source" : "target"), label(state.site === "decoder_self" ? "read" : "source")],
    // The rows of a piece, one for each of the selected layers and heads.
    rowsOf: (row) => indices(layer, found.weights.length).flatMap((l) =>
      indices(head, found.weights[0].length).map((h) => ({ layer: l, head: h, weights: found.weights[l][h][row] }))),
    isBlocked: (row, column) => state.site === "decoder_self" && columnSpans[column][0] > rowSpans[row][1] - 1,
  };
}

// The first map minus the second; null if their labels differ.
export function differenceOf(first, second) {
  const same = (one, other) => one.length === other.length && one.every((text, i) => text === other[i]);
  if (!first || !second || !same(first.rows, second.rows) || !same(first.columns, second.columns)) return null;
  const weights = first.weights.map((row, r) => row.map((weight, c) => weight - second.weights[r][c]));
  return { ...first, weights, most: Math.max(...weights.flat().map(Math.abs)) };
}

// A row of weights in which the chosen columns sum to `total`, and the others share the rest in the same proportions.
export function reweighted(row, columns, total) {
  const chosen = new Set(columns);
  const sumOf = (wanted) => row.reduce((sum, weight, i) => sum + (chosen.has(i) === wanted ? weight : 0), 0);
  const inside = sumOf(true), outside = sumOf(false), others = row.length - columns.length;
  return row.map((weight, i) => chosen.has(i)
    ? (inside > 0 ? weight * total / inside : total / columns.length)
    : (outside > 0 ? weight * (1 - total) / outside : (1 - total) / others));
}
