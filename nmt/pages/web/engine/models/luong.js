// @ts-check
// Luong et al. 2015: the query is the current decoder state, and the context enters after the recurrence.
// As nmt/models/luong.py.

import { withHeads } from "./attention.js";
import { LSTMN, lstm, makeEncoder } from "./recurrent.js";
import { embedded, joined, linear, products, tanh } from "./vectors.js";

/** @typedef {import("./vectors.js").Vector} Vector */
/** @typedef {import("./weights.js").Weights} Weights */
/** @typedef {import("./attention.js").KeysValues} KeysValues */
/** @typedef {import("./recurrent.js").Cell} Cell */
/** @typedef {import("./recurrent.js").HiddenCell} HiddenCell */
/** @typedef {import("./recurrent.js").Past} Past */
/** @typedef {import("./model.js").WatchSite} WatchSite */
/** @typedef {import("./model.js").Structure} Structure */
/** @typedef {{ annotations: KeysValues, first: HiddenCell[] }} Memory */
/** Hidden states and cells of all layers, h~_{t-1}, and the past of layers that are LSTMNs. @typedef {{ layers: HiddenCell[], attentional: Vector, pasts: (Past | null)[], position: number }} State */

/** h~_t = tanh(W_c [c_t; h_t]) (equation 5), then softmax(W_s h~_t) (equation 6). */
export class Luong {
  /** @param {Weights} weights @param {Structure} about */
  constructor(weights, about) {
    const { cross, decoder_self: decoderSelf } = about.sites;
    this.sourceEmbedding = weights.matrix("source_embedding.weight");
    this.targetEmbedding = weights.matrix("target_embedding.weight");
    const layers = Array.from({ length: about.layers }, (_, index) => index);
    this.encoder = makeEncoder(layers.map((index) => weights.of(`encoder.${index}`)), about, lstm);
    this.bridges = weights.has("hidden_bridge.0.weight") ? layers.map((index) => ({ hidden: weights.linear(`hidden_bridge.${index}`), cell: weights.linear(`cell_bridge.${index}`) })) : null;
    /** @type {Cell[]} */
    this.cells = layers.map((index) => about.decoder === "LSTMNDecoder" ? new LSTMN(weights.of(`cells.${index}`), decoderSelf) : lstm(weights.of(`cells.${index}`), ""));
    this.inputFeeding = about.input_feeding;
    this.attention = withHeads(weights.of("attention"), cross, cross.heads, this.cells[0].width);
    this.combine = weights.matrix("combine.weight"); // W_c
    this.output = weights.linear("output"); // W_s
    this.sites = {
      encoder_self: this.encoder.attentions,
      decoder_self: this.cells.flatMap((cell) => cell instanceof LSTMN ? [cell.attention] : []),
      cross: [this.attention.attention],
    };
  }

  /** @param {number[]} source @param {WatchSite} [watch] @returns {Memory} */
  encode(source, watch) {
    const { annotations, finals } = this.encoder.read(embedded(this.sourceEmbedding, source), watch);
    const first = finals.map((directions, layer) => {
      const h = joined(...directions.map((state) => state.h)), c = joined(...directions.map((state) => state.c));
      if (!this.bridges) return { h, c }; // the paper's encoder hands its states over
      const { hidden, cell } = this.bridges[layer];
      return { h: tanh(linear(hidden, [h])[0]), c: tanh(linear(cell, [c])[0]) };
    });
    return { annotations: this.attention.project(annotations), first };
  }

  /** @param {Memory} memory @returns {State} */
  start({ first }) {
    return { layers: first, attentional: new Float64Array(this.cells[0].width), pasts: this.cells.map((cell) => cell.start()), position: 0 };
  }

  /** @param {number[]} pieces @param {State[]} states @param {Memory} memory @param {WatchSite} [watch] */
  advance(pieces, states, memory, watch) {
    const positions = states.map(({ position }) => position);
    const inputs = embedded(this.targetEmbedding, pieces);
    // [y_{t-1}; h~_{t-1}], section 3.3
    let below = this.inputFeeding ? inputs.map((input, row) => joined(input, states[row].attentional)) : inputs;
    /** @type {State[]} */
    const next = states.map(({ attentional, position }) => ({ layers: [], attentional, pasts: [], position: position + 1 }));
    for (const [index, cell] of this.cells.entries()) {
      const { states: read, pasts } = cell.step(below, states.map(({ layers }) => layers[index]), states.map((state) => state.pasts[index]), positions, watch?.("decoder_self", index));
      for (const [row, state] of next.entries()) {
        state.layers.push(read[row]);
        state.pasts.push(pasts[row]);
      }
      below = read.map(({ h }) => h);
    }
    // c_t, the mean of the h_s with the weights a_t(s) of equation 7; the query is h_t
    const contexts = this.attention.attend(below, pieces.map(() => memory.annotations), positions, watch?.("cross", 0));
    const features = products(this.combine, contexts.map((context, row) => joined(context, below[row]))).map(tanh); // h~_t, equation 5
    for (const [row, state] of next.entries()) state.attentional = features[row];
    return { features, states: next };
  }
}
