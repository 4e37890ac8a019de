// @ts-check
// The Transformer (Vaswani et al. 2017) with any Attention at each of its three sites.
// As nmt/models/transformer.py and transformer_layers.py.

import { MultiHeadAttention, appended, byHead } from "./attention.js";
import { addTo, dot, embedded, linear } from "./vectors.js";

/** @typedef {import("./vectors.js").Vector} Vector */
/** @typedef {import("./weights.js").Weights} Weights */
/** @typedef {import("./attention.js").KeysValues} KeysValues */
/** @typedef {import("./model.js").WatchSite} WatchSite */
/** @typedef {import("./model.js").Structure} Structure */
/** @typedef {(x: Vector) => Vector} Norm */
/** The keys and values of the source for each decoder layer. @typedef {{ cross: KeysValues[] }} Memory */
/** The keys and values of the pieces read so far, for each decoder layer. @typedef {{ past: KeysValues[], position: number }} State */

export class Transformer {
  /** @param {Weights} weights @param {Structure} about */
  constructor(weights, about) {
    const { encoder_self: encoderSelf, decoder_self: decoderSelf, cross } = about.sites;
    this.sourceEmbedding = weights.matrix("source_embedding.weight"); // E
    this.targetEmbedding = weights.matrix("target_embedding.weight"); // E
    this.output = weights.linear("output"); // E again, section 3.4
    this.dim = this.targetEmbedding.columns; // d_model
    this.encoder = Array.from({ length: encoderSelf.layers }, (_, index) => {
      const layer = weights.of(`encoder.${index}`);
      return {
        attention: new MultiHeadAttention(layer.of("attention"), encoderSelf, encoderSelf.heads),
        aroundAttention: sublayer(layer.of("around_attention"), about),
        feedForward: feedForward(layer.of("feed_forward")),
        aroundFfn: sublayer(layer.of("around_ffn"), about),
      };
    });
    this.decoder = Array.from({ length: cross.layers }, (_, index) => {
      const layer = weights.of(`decoder.${index}`);
      return {
        attention: new MultiHeadAttention(layer.of("attention"), decoderSelf, decoderSelf.heads),
        aroundAttention: sublayer(layer.of("around_attention"), about),
        cross: new MultiHeadAttention(layer.of("cross"), cross, cross.heads),
        aroundCross: sublayer(layer.of("around_cross"), about),
        feedForward: feedForward(layer.of("feed_forward")),
        aroundFfn: sublayer(layer.of("around_ffn"), about),
      };
    });
    this.encoderNorm = about.norm_first ? norm(weights.of("encoder_norm"), about) : identity;
    this.decoderNorm = about.norm_first ? norm(weights.of("decoder_norm"), about) : identity;
    this.sites = {
      encoder_self: this.encoder.map((layer) => layer.attention.attention),
      decoder_self: this.decoder.map((layer) => layer.attention.attention),
      cross: this.decoder.map((layer) => layer.cross.attention),
    };
  }

  /** Reads a source, and returns what the decoder attends to. @param {number[]} source @param {WatchSite} [watch] @returns {Memory} */
  encode(source, watch) {
    let x = embedded(this.sourceEmbedding, source).map(withPosition);
    const positions = [...source.keys()];
    for (const [index, layer] of this.encoder.entries()) {
      const inputs = layer.aroundAttention.before(x);
      const memory = layer.attention.project(inputs);
      x = layer.aroundAttention.after(x, layer.attention.attend(inputs, source.map(() => memory), positions, watch?.("encoder_self", index)));
      x = layer.aroundFfn.after(x, layer.feedForward(layer.aroundFfn.before(x)));
    }
    const annotations = x.map(this.encoderNorm);
    return { cross: this.decoder.map((layer) => layer.cross.project(annotations)) };
  }

  /** The State before the first piece. @param {Memory} _ @returns {State} */
  start(_) {
    return { past: this.decoder.map(({ attention: { attention: { heads } } }) => byHead(heads, () => [], () => [])), position: 0 };
  }

  /** Reads the next piece of each hypothesis: the inputs of the output layer, and the new States. @param {number[]} pieces @param {State[]} states @param {Memory} memory @param {WatchSite} [watch] */
  advance(pieces, states, memory, watch) {
    /** @type {State[]} */
    const next = states.map(({ position }) => ({ past: [], position: position + 1 }));
    const features = this.#read(pieces, states.map((state) => state.position), memory, watch, (added, index) => next.map(({ past }, row) => {
      const newest = byHead(added.keys.length, (head) => [added.keys[head][row]], (head) => [added.values[head][row]]);
      past.push(appended(states[row].past[index], newest));
      return past[index];
    }));
    return { features, states: next };
  }

  /** Reads the next pieces of one hypothesis at once: each sees the pieces up to itself. Returns the inputs of the output layer and the State after each. @param {number[]} pieces @param {State} state @param {Memory} memory @param {WatchSite} [watch] */
  advanceAll(pieces, state, memory, watch) {
    const positions = pieces.map((_, t) => state.position + t);
    /** @type {State[]} */
    const states = positions.map((position) => ({ past: [], position: position + 1 }));
    const features = this.#read(pieces, positions, memory, watch, (added, index) => states.map(({ past }, t) => {
      const upToHere = byHead(added.keys.length, (head) => added.keys[head].slice(0, t + 1), (head) => added.values[head].slice(0, t + 1));
      past.push(appended(state.past[index], upToHere));
      return past[index];
    }));
    return { features, states };
  }

  /** The decoder stack. `keep` returns what each row sees in self-attention, given the keys and values of all rows. @param {number[]} pieces @param {number[]} positions @param {Memory} memory @param {WatchSite | undefined} watch @param {(added: KeysValues, layer: number) => KeysValues[]} keep */
  #read(pieces, positions, memory, watch, keep) {
    let x = embedded(this.targetEmbedding, pieces).map((input, row) => withPosition(input, positions[row]));
    for (const [index, layer] of this.decoder.entries()) { // section 3.1, the three sub-layers of a decoder layer
      const inputs = layer.aroundAttention.before(x);
      const kept = keep(layer.attention.project(inputs), index);
      x = layer.aroundAttention.after(x, layer.attention.attend(inputs, kept, positions, watch?.("decoder_self", index)));
      x = layer.aroundCross.after(x, layer.cross.attend(layer.aroundCross.before(x), pieces.map(() => memory.cross[index]), positions, watch?.("cross", index)));
      x = layer.aroundFfn.after(x, layer.feedForward(layer.aroundFfn.before(x)));
    }
    return x.map(this.decoderNorm);
  }
}

/** norm(x + f(x)), the residual connection around f; with pre-norm x + f(norm(x)). @param {Weights} weights @param {Structure} about */
function sublayer(weights, about) {
  const normalize = norm(weights.of("norm"), about);
  return {
    /** The input of f. @param {Vector[]} x */
    before: (x) => about.norm_first ? x.map(normalize) : x,
    /** @param {Vector[]} x @param {Vector[]} result */
    after: (x, result) => x.map((vector, index) => {
      const sum = addTo(result[index], vector);
      return about.norm_first ? sum : normalize(sum);
    }),
  };
}

/** FFN(x) = max(0, x W1 + b1) W2 + b2 (section 3.3). @param {Weights} weights */
function feedForward(weights) {
  const inner = weights.linear("inner"), outer = weights.linear("outer");
  return (/** @type {Vector[]} */ x) => linear(outer, linear(inner, x).map(rectified));
}

/** max(0, x), in place. @param {Vector} x */
function rectified(x) {
  for (let index = 0; index < x.length; index++) if (x[index] < 0) x[index] = 0;
  return x;
}

/** @type {Norm} */
const identity = (x) => x;

/** A norm of nmt/models/norms.py. @param {Weights} weights @param {Structure} about @returns {Norm} */
function norm(weights, about) {
  return about.norm === "ScaleNorm" ? scaleNorm(weights.vector("length")[0], about.norm_eps) : layerNorm(weights.vector("weight"), weights.vector("bias"), about.norm_eps);
}

/** g (x - mean) / deviation + b (Ba et al. 2016). @param {Vector} g @param {Vector} b @param {number} eps @returns {Norm} */
function layerNorm(g, b, eps) {
  return (x) => {
    let sum = 0, squares = 0;
    for (let index = 0; index < x.length; index++) sum += x[index];
    const mean = sum / x.length;
    for (let index = 0; index < x.length; index++) squares += (x[index] - mean) ** 2;
    const deviation = Math.sqrt(squares / x.length + eps);
    const result = new Float64Array(x.length);
    for (let index = 0; index < x.length; index++) result[index] = g[index] * (x[index] - mean) / deviation + b[index];
    return result;
  };
}

/** g x / |x| (Nguyen & Salazar 2019). @param {number} g @param {number} eps @returns {Norm} */
function scaleNorm(g, eps) {
  return (x) => {
    const length = Math.max(Math.sqrt(dot(x, x)), eps);
    return x.map((entry) => g * entry / length);
  };
}

/**
 * sqrt(d) E x + PE with PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(same) (sections 3.4 and 3.5).
 * @param {Vector} input @param {number} position
 */
function withPosition(input, position) {
  const dim = input.length;
  const key = `${position} ${dim}`;
  const encoding = encodings.get(key) ?? Float64Array.from({ length: dim }, (_, column) => {
    const angle = position / 10000 ** ((column - column % 2) / dim);
    return column % 2 ? Math.cos(angle) : Math.sin(angle);
  });
  encodings.set(key, encoding);
  const scale = Math.sqrt(dim);
  return input.map((entry, column) => scale * entry + encoding[column]);
}

/** PE of each position and width so far. @type {Map<string, Vector>} */
const encodings = new Map();
