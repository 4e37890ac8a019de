// @ts-check
// The recurrent networks of Bahdanau's and Luong's models, and their encoders.
// As torch's GRU and LSTM, nmt/models/encoders.py and nmt/models/lstmn.py.

import { Attention } from "./attention.js";
import { joined, linear, products, sigmoid, splitInto } from "./vectors.js";

/** @typedef {import("./vectors.js").Vector} Vector */
/** @typedef {import("./vectors.js").Linear} Linear */
/** @typedef {import("./weights.js").Weights} Weights */
/** @typedef {import("./attention.js").About} About */
/** @typedef {import("./attention.js").KeysValues} KeysValues */
/** @typedef {import("./attention.js").Watch} Watch */
/** @typedef {import("./model.js").WatchSite} WatchSite */
/** @typedef {import("./model.js").Structure} Structure */

/** The hidden state h and, for an LSTM, the cell c. @typedef {{ h: Vector, c: Vector }} HiddenCell */
/** What an LSTMN remembers: the keys of h_i and the values [h_i; c_i] for i < t, and h~_{t-1}. @typedef {{ tape: KeysValues, hTilde: Vector }} Past */
/**
 * A network that reads one input for each row. `past` is null except for an LSTMN.
 * @typedef {object} Cell
 * @property {number} width of its state
 * @property {() => Past | null} start the past before the first step
 * @property {(inputs: Vector[], previous: HiddenCell[], pasts: (Past | null)[], positions: number[], watch?: Watch) => { states: HiddenCell[], pasts: (Past | null)[] }} step
 */

/** The weights of a cell; `suffix` is _l0 in a torch layer. @param {Weights} weights @param {string} suffix */
function cellWeights(weights, suffix) {
  const [ofInput, ofState] = ["ih", "hh"].map((part) => ({ weight: weights.matrix(`weight_${part}${suffix}`), bias: weights.vector(`bias_${part}${suffix}`) }));
  return { ofInput, ofState };
}

/**
 * r = sigmoid(W_r x + U_r h), z = sigmoid(W_z x + U_z h), n = tanh(W_n x + r * (U_n h)), h' = (1 - z) n + z h
 * (Cho et al. 2014; torch applies the reset gate r after the product).
 * @param {Weights} weights @param {string} suffix @returns {Cell}
 */
export function gru(weights, suffix) {
  const { ofInput, ofState } = cellWeights(weights, suffix);
  const width = ofState.weight.columns;
  return {
    width,
    start: () => null,
    step(inputs, previous, pasts) {
      const fromInputs = linear(ofInput, inputs), fromStates = linear(ofState, previous.map(({ h }) => h));
      const states = previous.map(({ h, c }, row) => {
        const [inputR, inputZ, inputN] = splitInto(fromInputs[row], 3);
        const [stateR, stateZ, stateN] = splitInto(fromStates[row], 3);
        const next = h.map((old, index) => {
          const r = sigmoid(inputR[index] + stateR[index]), z = sigmoid(inputZ[index] + stateZ[index]);
          const n = Math.tanh(inputN[index] + r * stateN[index]);
          return (1 - z) * n + z * old;
        });
        return { h: next, c };
      });
      return { states, pasts };
    },
  };
}

/**
 * i, f, o = sigmoid(W x + U h), g = tanh(W_g x + U_g h), c' = f c + i g, h' = o tanh(c') (Hochreiter & Schmidhuber 1997;
 * Gers et al. 2000).
 * @param {Weights} weights @param {string} suffix @returns {Cell}
 */
export function lstm(weights, suffix) {
  const { ofInput, ofState } = cellWeights(weights, suffix);
  const width = ofState.weight.columns;
  return {
    width,
    start: () => null,
    step(inputs, previous, pasts) {
      const fromInputs = linear(ofInput, inputs), fromStates = linear(ofState, previous.map(({ h }) => h));
      const states = previous.map(({ c }, row) => {
        const [i, f, g, o] = splitInto(fromInputs[row].map((entry, index) => entry + fromStates[row][index]), 4);
        const cell = c.map((old, index) => sigmoid(f[index]) * old + sigmoid(i[index]) * Math.tanh(g[index]));
        return { h: cell.map((entry, index) => sigmoid(o[index]) * Math.tanh(entry)), c: cell };
      });
      return { states, pasts };
    },
  };
}

/**
 * An LSTM whose previous state is a weighted mean of all its past states (Cheng et al. 2016, section 3.1):
 * s = normalizer(score(q_t, h_i)) over i < t with q_t = W_q [x_t; h~_{t-1}] (equations 4 and 5);
 * [h~_t; c~_t] = sum_i s_i [h_i; c_i] (equation 6); h_t, c_t = LSTM(x_t, (h~_t, c~_t)) (equations 7 to 9).
 */
export class LSTMN {
  /** @param {Weights} weights @param {About} about */
  constructor(weights, about) {
    this.query = weights.matrix("query.weight"); // W_q
    this.width = this.query.rows;
    this.attention = new Attention(weights.of("attention"), about, 1, this.width);
    this.cell = lstm(weights.of("cell"), "");
  }

  /** @returns {Past} */
  start() { return { tape: { keys: [[]], values: [[]] }, hTilde: new Float64Array(this.width) }; }

  /** @type {Cell["step"]} `previous` is used at position 0 alone */
  step(inputs, previous, pasts, positions, watch) {
    const known = /** @type {Past[]} */ (pasts);
    const queries = products(this.query, inputs.map((input, row) => joined(input, known[row].hTilde))); // q_t
    const means = queries.map((query, row) => {
      const [attended] = this.attention.attend([query], known[row].tape, { state: query, position: positions[row] }, watch);
      if (positions[row] === 0) return previous[row];
      const [h, c] = splitInto(attended, 2);
      return { h, c };
    });
    const { states } = this.cell.step(inputs, means, pasts, positions);
    return {
      states,
      pasts: states.map(({ h, c }, row) => {
        const { keys: [keys], values: [values] } = known[row].tape;
        return { tape: { keys: [[...keys, this.attention.scorer.projectKey(h, 0)]], values: [[...values, joined(h, c)]] }, hTilde: means[row].h };
      }),
    };
  }
}

/** Reads a sequence from its first input to its last: the states. @param {Cell} cell @param {Vector[]} inputs @param {Watch} [watch] */
function read(cell, inputs, watch) {
  let state = { h: new Float64Array(cell.width), c: new Float64Array(cell.width) };
  let past = cell.start();
  return inputs.map((input, position) => {
    const { states, pasts } = cell.step([input], [state], [past], [position], watch);
    [state] = states;
    [past] = pasts;
    return state;
  });
}

/** The annotations of a source, and the final states of each layer and direction. @typedef {{ annotations: Vector[], finals: HiddenCell[][] }} Encoded */

/** A stack of layers that reads the source. @typedef {{ attentions: Attention[], read: (embedded: Vector[], watch?: WatchSite) => Encoded }} Encoder */

/**
 * The encoder of a class of nmt/models/encoders.py. `parts` are the weights of each layer, and `network` is the model's
 * kind, which an LSTMN replaces.
 * @param {Weights[]} parts @param {Structure} about @param {typeof gru} network @returns {Encoder}
 */
export function makeEncoder(parts, about, network) {
  /** @type {Record<string, () => Encoder>} */
  const encoders = {
    // h_j = [h_j forward; h_j backward] (Bahdanau et al. 2015, section 3.2).
    Bidirectional() {
      const layers = parts.map((weights) => [network(weights, "_l0"), network(weights, "_l0_reverse")]);
      return {
        attentions: [],
        read: (embedded) => stacked(layers, embedded, ([forward, backward], inputs) => {
          const there = read(forward, inputs), back = read(backward, inputs.slice().reverse());
          const outputs = there.map(({ h }, index) => joined(h, back[back.length - 1 - index].h));
          return { outputs, finals: [there[there.length - 1], back[back.length - 1]] };
        }),
      };
    },
    // From the last piece to the first, then EOS (Luong et al. 2015, section 4.2; Sutskever et al. 2014).
    Reversed() {
      const layers = parts.map((weights) => network(weights, "_l0"));
      return {
        attentions: [],
        read(embedded) {
          const { annotations, finals } = stacked(layers, reversed(embedded), (layer, inputs) => {
            const states = read(layer, inputs);
            return { outputs: states.map(({ h }) => h), finals: [states[states.length - 1]] };
          });
          return { annotations: reversed(annotations), finals };
        },
      };
    },
    // From left to right, with attention to its own past (Cheng et al. 2016).
    LSTMNEncoder() {
      const layers = parts.map((weights) => new LSTMN(weights, about.sites.encoder_self));
      return {
        attentions: layers.map((layer) => layer.attention),
        read: (embedded, watch) => stacked(layers, embedded, (layer, inputs, index) => {
          const states = read(layer, inputs, watch?.("encoder_self", index));
          return { outputs: states.map(({ h }) => h), finals: [states[states.length - 1]] };
        }),
      };
    },
  };
  return encoders[/** @type {string} */ (about.encoder)]();
}

/**
 * Each layer reads the outputs of the one below it.
 * @template L
 * @param {L[]} layers @param {Vector[]} embedded
 * @param {(layer: L, inputs: Vector[], index: number) => { outputs: Vector[], finals: HiddenCell[] }} run
 * @returns {Encoded}
 */
function stacked(layers, embedded, run) {
  let annotations = embedded;
  const finals = layers.map((layer, index) => {
    const { outputs, finals: ofLayer } = run(layer, annotations, index);
    annotations = outputs;
    return ofLayer;
  });
  return { annotations, finals };
}

/** All but the last in the opposite order: EOS stays at the end. @param {Vector[]} vectors */
function reversed(vectors) {
  return [...vectors.slice(0, -1).reverse(), ...vectors.slice(-1)];
}
