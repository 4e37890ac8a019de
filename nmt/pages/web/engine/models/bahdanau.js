// @ts-check
// RNNsearch (Bahdanau et al. 2015): the query is the previous decoder state, and the context enters the recurrence.
// As nmt/models/bahdanau.py.

import { withHeads } from "./attention.js";
import { gru, makeEncoder } from "./recurrent.js";
import { embedded, joined, linear, tanh } from "./vectors.js";

/** @typedef {import("./vectors.js").Vector} Vector */
/** @typedef {import("./weights.js").Weights} Weights */
/** @typedef {import("./attention.js").KeysValues} KeysValues */
/** @typedef {import("./recurrent.js").HiddenCell} HiddenCell */
/** @typedef {import("./model.js").WatchSite} WatchSite */
/** @typedef {import("./model.js").Structure} Structure */
/** @typedef {{ annotations: KeysValues, first: HiddenCell }} Memory */
/** s_{t-1}, which is the next query. @typedef {{ hidden: HiddenCell, position: number }} State */

/** s_t = GRU([E y_{t-1}; c_t], s_{t-1}); s_{t-1} is the query for c_t (section 3.1). */
export class Bahdanau {
  /** @param {Weights} weights @param {Structure} about */
  constructor(weights, about) {
    const { cross } = about.sites;
    this.sourceEmbedding = weights.matrix("source_embedding.weight");
    this.targetEmbedding = weights.matrix("target_embedding.weight"); // E
    this.encoder = makeEncoder([weights.of("encoder")], about, gru);
    this.bridge = weights.linear("bridge"); // W_s
    this.cell = gru(weights.of("cell"), "");
    this.attention = withHeads(weights.of("attention"), cross, cross.heads, this.cell.width);
    this.readout = weights.linear("readout"); // [U_o V_o C_o]
    this.output = weights.linear("output"); // W_o
    this.sites = { encoder_self: this.encoder.attentions, decoder_self: [], cross: [this.attention.attention] };
  }

  /** @param {number[]} source @param {WatchSite} [watch] @returns {Memory} */
  encode(source, watch) {
    const { annotations, finals: [directions] } = this.encoder.read(embedded(this.sourceEmbedding, source), watch);
    const last = directions[directions.length - 1].h; // b_1, the backward state at the first piece
    const hidden = tanh(linear(this.bridge, [last])[0]); // s_0 = tanh(W_s b_1), A.2.2
    return { annotations: this.attention.project(annotations), first: { h: hidden, c: hidden } };
  }

  /** @param {Memory} memory @returns {State} */
  start({ first }) { return { hidden: first, position: 0 }; }

  /** @param {number[]} pieces @param {State[]} states @param {Memory} memory @param {WatchSite} [watch] */
  advance(pieces, states, memory, watch) {
    const positions = states.map(({ position }) => position);
    const inputs = embedded(this.targetEmbedding, pieces); // E y_{t-1}
    const previous = states.map(({ hidden }) => hidden); // s_{t-1}
    // c_t = sum_j alpha_tj h_j, equation 5, with alpha = softmax of e_tj = a(s_{t-1}, h_j), equation 6
    const contexts = this.attention.attend(previous.map(({ h }) => h), pieces.map(() => memory.annotations), positions, watch?.("cross", 0));
    // s_t = f(s_{t-1}, y_{t-1}, c_t), section 3.1; f is a GRU, A.2.2
    const { states: hidden } = this.cell.step(inputs.map((input, row) => joined(input, contexts[row])), previous, states.map(() => null), positions);
    // t~_t = U_o s_{t-1} + V_o E y_{t-1} + C_o c_t, and t_t, the maxima of pairs of its entries (A.2.2)
    const readouts = linear(this.readout, previous.map(({ h }, row) => joined(h, inputs[row], contexts[row])));
    const features = readouts.map((readout) => Float64Array.from({ length: readout.length / 2 }, (_, index) => Math.max(readout[2 * index], readout[2 * index + 1])));
    return { features, states: hidden.map((state, row) => ({ hidden: state, position: positions[row] + 1 })) };
  }
}
