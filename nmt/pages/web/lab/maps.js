// @ts-check
// The selected map of an answer.

import { label } from "../i18n.js";
import { decimal } from "../language.js";
import { indicesOf, mapOf } from "../map.js";
import { state } from "./state.js";

/**
 * @typedef {import("../map.js").AttentionMap & {
 *   names: [string, string],
 *   isBlocked: (row: number, column: number) => boolean,
 *   rowsOf: (piece: number) => { layer: number, head: number, weights: number[] }[],
 * }} LabMap `rowsOf` returns the rows of a piece, one for each of the selected layers and heads
 */

/**
 * The map of one layer and head, or the mean over several. A cell of decoder self-attention is blocked if its piece
 * comes after the pieces that the row has read. A row of an LSTMN sees only the pieces before its own, on both sides.
 * @param {import("../engine/interface.js").SiteMaps} maps @param {import("../map.js").Choice} layer @param {import("../map.js").Choice} head
 * @returns {LabMap}
 */
export function selectedMap({ outputs, columns, weights }, layer, head, unit = state.unit) {
  const layers = indicesOf(layer, weights.length), heads = indicesOf(head, weights[0].length);
  const map = mapOf((l, h, row, column) => weights[l][h][row][column], layers, heads, outputs, columns, unit);
  const isOfLstmn = state.site.endsWith("_self") && weights.every((ofLayer) => ofLayer.every(([first]) => first.every((weight) => weight === 0)));
  const seen = (/** @type {number} */ row) => map.rowSpans[row][1] - (isOfLstmn ? 1 : 0);
  return {
    ...map,
    names: [label(state.site === "encoder_self" ? "source" : "target"), label(state.site === "decoder_self" ? "read" : "source")],
    isBlocked: (row, column) => (isOfLstmn || state.site === "decoder_self") && map.columnSpans[column][0] >= seen(row),
    rowsOf: (piece) => layers.flatMap((l) => heads.map((h) => ({ layer: l, head: h, weights: weights[l][h][piece] }))),
  };
}

/** What a cell says when it is pointed at. @param {import("../map.js").AttentionMap} map */
export const tipOf = (map) => (/** @type {number} */ row, /** @type {number} */ column) => map.isBlocked?.(row, column)
  ? label("blocked", map.rows[row], map.columns[column]) : `${map.rows[row]} → ${map.columns[column]}: ${decimal(map.weights[row][column], 3)}`;
