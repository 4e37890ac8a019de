// @ts-check
// The selected map of an answer.

import { label } from "../i18n.js";
import { decimal } from "../language.js";
import { indicesOf, mapOf } from "../map.js";
import { seesOnlyPast } from "./runs.js";
import { state, subject } from "./state.js";

/**
 * @typedef {import("../map.js").AttentionMap & {
 *   names: [string, string],
 *   isBlocked: (row: number, column: number) => boolean,
 *   whyBlocked: "blocked" | "blockedByItself",
 *   visible: (piece: number) => number[],
 *   rowsOf: (piece: number) => { layer: number, head: number, weights: number[] }[],
 * }} LabMap `rowsOf` returns the rows of a piece, one for each of the selected layers and heads, and `visible` 1 for each column that its row may see, else 0
 */

/**
 * The map of one layer and head, or the mean over several. A cell of decoder self-attention is blocked if its piece
 * comes after the pieces that the row has read. A row of an LSTMN sees only the pieces before its own, on both sides.
 * @param {import("../engine/interface.js").SiteMaps} maps @param {import("../map.js").Choice} layer @param {import("../map.js").Choice} head
 * @returns {LabMap}
 */
export function selectedMap({ outputs, columns, weights }, layer, head, unit = state.unit, run = subject.run) {
  const layers = indicesOf(layer, weights.length), heads = indicesOf(head, weights[0].length);
  const map = mapOf((l, h, row, column) => weights[l][h][row][column], layers, heads, outputs, columns, unit);
  const isPast = seesOnlyPast(run);
  // The number of columns that the row of a piece may see; a local window may hide some of them.
  const seen = (/** @type {number} */ piece) => isPast ? piece : state.site === "decoder_self" ? piece + 1 : columns.length;
  return {
    ...map,
    names: [label(state.site === "encoder_self" ? "source" : "target"), label(state.site === "decoder_self" ? "read" : "source")],
    isBlocked: (row, column) => map.columnSpans[column][0] >= seen(map.rowSpans[row][1] - 1),
    whyBlocked: isPast ? "blockedByItself" : "blocked",
    visible: (piece) => columns.map((_, column) => column < seen(piece) ? 1 : 0),
    rowsOf: (piece) => layers.flatMap((l) => heads.map((h) => ({ layer: l, head: h, weights: weights[l][h][piece] }))),
  };
}

/** What a cell says when it is pointed at. @param {import("../map.js").AttentionMap} map */
export const tipOf = (map) => (/** @type {number} */ row, /** @type {number} */ column) => map.isBlocked?.(row, column)
  ? label(map.whyBlocked ?? "blocked", map.rows[row], map.columns[column]) : `${map.rows[row]} → ${map.columns[column]}: ${decimal(map.weights[row][column], 3)}`;
