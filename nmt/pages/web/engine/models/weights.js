// @ts-check
// The parameters of a model, by the names that they have in nmt/models.

import { Simd } from "./simd.js";
import { transposed } from "./vectors.js";

/** @typedef {import("./vectors.js").Matrix} Matrix */
/** @typedef {import("./vectors.js").Linear} Linear */

/**
 * Where a tensor is among the bytes of a model: `offset` of its numbers, and of its scales if the numbers are int8, one
 * for each index of the first axis.
 * @typedef {{ shape: number[], offset: number, scales?: number }} Place
 */

export class Weights {
  #bytes;
  #simd;
  #places;
  #prefix;

  /** @param {ArrayBuffer | Simd} bytes @param {Record<string, Place>} places @param {string} [prefix] what all names begin with */
  constructor(bytes, places, prefix = "") {
    this.#bytes = bytes instanceof Simd ? bytes.bytes : bytes;
    this.#simd = bytes instanceof Simd ? bytes : null;
    this.#places = places;
    this.#prefix = prefix;
  }

  /** The parameters of a part of the model, such as decoder.0. @param {string} name */
  of(name) { return new Weights(this.#simd ?? this.#bytes, this.#places, `${this.#prefix}${name}.`); }

  /** @param {string} name */
  has(name) { return this.#prefix + name in this.#places; }

  /** The number of rows of a matrix. @param {string} name */
  rows(name) { return this.#place(name).shape[0]; }

  /** All numbers of a tensor. @param {string} name */
  vector(name) {
    const { shape, values, scales } = this.#read(name);
    const ofOne = values.length / shape[0];
    return Float64Array.from(values, scales ? (entry, index) => entry * scales[Math.floor(index / ofOne)] : undefined);
  }

  /** @param {string} name @returns {Matrix} */
  matrix(name) {
    const { shape, values, scales } = this.#read(name);
    return { rows: shape[0], columns: values.length / shape[0], values, scales, simd: this.#simd };
  }

  /** @param {string} name @returns {Linear} */
  linear(name) {
    const bias = `${name}.bias`;
    return { weight: this.matrix(`${name}.weight`), bias: this.has(bias) ? this.vector(bias) : null };
  }

  /** The matrices of each head. @param {string} name @returns {Matrix[]} */
  heads(name) {
    const { shape: [heads, rows, columns], values, scales } = this.#read(name);
    return Array.from({ length: heads }, (_, head) => ({
      rows,
      columns,
      values: values.subarray(head * rows * columns, (head + 1) * rows * columns),
      scales: scales && new Float64Array(rows).fill(scales[head]),
      simd: this.#simd,
    }));
  }

  /** The matrix W of each head, where the tensor holds the W' of x W'. @param {string} name */
  transposedHeads(name) { return this.heads(name).map(transposed); }

  /** @param {string} name */
  #place(name) {
    const place = this.#places[this.#prefix + name];
    if (!place) throw new Error(`The model has no weights ${this.#prefix}${name}.`);
    return place;
  }

  /** @param {string} name */
  #read(name) {
    const { shape, offset, scales } = this.#place(name);
    const size = shape.reduce((product, length) => product * length, 1);
    return {
      shape,
      values: scales === undefined ? new Float32Array(this.#bytes, offset, size) : new Int8Array(this.#bytes, offset, size),
      scales: scales === undefined ? null : Float64Array.from(new Float32Array(this.#bytes, scales, shape[0])),
    };
  }
}
