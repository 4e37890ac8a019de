// @ts-check
// The arithmetic of the models. A vector is a Float64Array, and a sequence is an array of vectors, one for each piece.
// Weights are stored as float32, or as int8 with one scale for each row. Sums are computed in float64, because that is
// what a number of JavaScript is, except for matrix products by simd.js, which computes in float32 as torch does.

/** @typedef {Float64Array<ArrayBuffer>} Vector */

/**
 * A matrix by rows. The entry in row i and column j is values[i * columns + j], times scales[i] if there are scales.
 * @typedef {object} Matrix
 * @property {number} rows
 * @property {number} columns
 * @property {Float32Array<ArrayBuffer> | Int8Array<ArrayBuffer>} values
 * @property {Float64Array | null} scales
 * @property {import("./simd.js").Simd | null} simd what multiplies it faster, if its values are there
 */

/** The parameters of W x + b. @typedef {{ weight: Matrix, bias: Vector | null }} Linear */

/** W x for each x. @param {Matrix} matrix @param {Vector[]} vectors @returns {Vector[]} */
export function products(matrix, vectors) {
  const results = unscaledProducts(matrix, vectors), { scales } = matrix;
  if (scales) for (const result of results) for (let row = 0; row < result.length; row++) result[row] *= scales[row];
  return results;
}

/** W x for each x, without the scales of W. @param {Matrix} matrix @param {Vector[]} vectors @returns {Vector[]} */
function unscaledProducts(matrix, vectors) {
  const results = vectors.map(() => new Float64Array(matrix.rows));
  if (matrix.simd) matrix.simd.multiply(matrix, vectors, results);
  else multiply(matrix, vectors, results);
  return results;
}

/** W x for each x, without the scales of W. @param {Matrix} matrix @param {Vector[]} vectors @param {Vector[]} results */
function multiply(matrix, vectors, results) {
  let done = 0;
  // An entry is read and converted once for several vectors, whose sums the processor computes side by side.
  while (vectors.length - done >= 3) done += multiplyFive(matrix, vectors, results, done);
  for (; done < vectors.length; done++) multiplyOne(matrix, vectors[done], results[done]);
}

/** Multiplies up to five vectors, and returns their number. @param {Matrix} matrix @param {Vector[]} vectors @param {Vector[]} results @param {number} first */
function multiplyFive({ rows, columns, values }, vectors, results, first) {
  const number = Math.min(5, vectors.length - first);
  // The last vector takes the places of those that are missing: their results are not stored.
  const [a, b, c, d, e] = [0, 1, 2, 3, 4].map((index) => vectors[first + Math.min(index, number - 1)]);
  for (let row = 0, at = 0; row < rows; row++) {
    let ofA = 0, ofB = 0, ofC = 0, ofD = 0, ofE = 0;
    for (let column = 0; column < columns; column++, at++) {
      const entry = values[at];
      ofA += entry * a[column];
      ofB += entry * b[column];
      ofC += entry * c[column];
      ofD += entry * d[column];
      ofE += entry * e[column];
    }
    results[first][row] = ofA;
    results[first + 1][row] = ofB;
    results[first + 2][row] = ofC;
    if (number > 3) results[first + 3][row] = ofD;
    if (number > 4) results[first + 4][row] = ofE;
  }
  return number;
}

/** @param {Matrix} matrix @param {Vector} vector @param {Vector} result */
function multiplyOne({ rows, columns, values }, vector, result) {
  const whole = columns - columns % 4;
  for (let row = 0; row < rows; row++) {
    const start = row * columns;
    // Four sums, because each addition would otherwise wait for the one before it.
    let first = 0, second = 0, third = 0, fourth = 0;
    let column = 0;
    for (; column < whole; column += 4) {
      const at = start + column;
      first += values[at] * vector[column];
      second += values[at + 1] * vector[column + 1];
      third += values[at + 2] * vector[column + 2];
      fourth += values[at + 3] * vector[column + 3];
    }
    for (; column < columns; column++) first += values[start + column] * vector[column];
    result[row] = first + second + third + fourth;
  }
}

/** W x + b for each x. @param {Linear} layer @param {Vector[]} vectors */
export function linear({ weight, bias }, vectors) {
  if (!bias) return products(weight, vectors);
  const results = unscaledProducts(weight, vectors), { scales } = weight;
  for (const result of results) {
    if (!scales) addTo(result, bias);
    else for (let row = 0; row < result.length; row++) result[row] = result[row] * scales[row] + bias[row];
  }
  return results;
}

/** A row of a matrix, such as the embedding of a piece. @param {Matrix} matrix @param {number} index */
export function rowOf({ columns, values, scales }, index) {
  const scale = scales ? scales[index] : 1;
  return Float64Array.from(values.subarray(index * columns, (index + 1) * columns), (entry) => entry * scale);
}

/** In place of a piece whose embedding is 0. */
export const HIDDEN = -1;

/** E x: the embedding of each piece. @param {Matrix} matrix @param {number[]} ids */
export const embedded = (matrix, ids) => ids.map((id) => id === HIDDEN ? new Float64Array(matrix.columns) : rowOf(matrix, id));

/** The matrix with rows and columns swapped; a matrix with scales needs the same scale in all of its rows. @param {Matrix} matrix @returns {Matrix} */
export function transposed({ rows, columns, values, scales }) {
  const swapped = values.slice();
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) swapped[column * rows + row] = values[row * columns + column];
  return { rows: columns, columns: rows, values: swapped, scales: scales && new Float64Array(columns).fill(scales[0]), simd: null };
}

/** @param {Vector} a @param {Vector} b */
export function dot(a, b) {
  const { length } = a, whole = length - length % 4;
  let first = 0, second = 0, third = 0, fourth = 0, index = 0;
  for (; index < whole; index += 4) {
    first += a[index] * b[index];
    second += a[index + 1] * b[index + 1];
    third += a[index + 2] * b[index + 2];
    fourth += a[index + 3] * b[index + 3];
  }
  for (; index < length; index++) first += a[index] * b[index];
  return first + second + third + fourth;
}

/** Adds b to a. @param {Vector} a @param {Vector} b */
export function addTo(a, b) {
  for (let index = 0; index < a.length; index++) a[index] += b[index];
  return a;
}

/** sum_i weights[i] vectors[i]. @param {ArrayLike<number>} weights @param {Vector[]} vectors @param {number} width */
export function weightedSum(weights, vectors, width) {
  const sum = new Float64Array(width), { length } = vectors, whole = length - length % 4;
  let index = 0;
  // A sum is read and stored once for four vectors.
  for (; index < whole; index += 4) {
    const first = weights[index], second = weights[index + 1], third = weights[index + 2], fourth = weights[index + 3];
    if (first === 0 && second === 0 && third === 0 && fourth === 0) continue;
    const a = vectors[index], b = vectors[index + 1], c = vectors[index + 2], d = vectors[index + 3];
    for (let column = 0; column < width; column++) sum[column] += first * a[column] + second * b[column] + third * c[column] + fourth * d[column];
  }
  for (; index < length; index++) {
    const weight = weights[index], vector = vectors[index];
    for (let column = 0; column < width; column++) sum[column] += weight * vector[column];
  }
  return sum;
}

/** [a; b; ...]. @param {Vector[]} parts */
export function joined(...parts) {
  const whole = new Float64Array(parts.reduce((length, part) => length + part.length, 0));
  let start = 0;
  for (const part of parts) {
    whole.set(part, start);
    start += part.length;
  }
  return whole;
}

/** Consecutive parts of the same width. @param {Vector} vector @param {number} number */
export function splitInto(vector, number) {
  const width = vector.length / number;
  return Array.from({ length: number }, (_, index) => vector.subarray(index * width, (index + 1) * width));
}

/** @param {Vector} vector */
export const tanh = (vector) => vector.map(Math.tanh);

/** @param {number} x */
export const sigmoid = (x) => 1 / (1 + Math.exp(-x));

/** log softmax(x), in place. @param {Vector} logits */
export function logSoftmax(logits) {
  let highest = -Infinity;
  for (let index = 0; index < logits.length; index++) if (logits[index] > highest) highest = logits[index];
  let sum = 0;
  for (let index = 0; index < logits.length; index++) sum += power(logits[index] - highest);
  const logOfSum = highest + Math.log(sum);
  for (let index = 0; index < logits.length; index++) logits[index] -= logOfSum;
  return logits;
}

const PARTS = 64;
/** The least x for which `power` is not 0. */
const LEAST = -40;
/** exp(-i / PARTS). */
const POWERS = Float64Array.from({ length: -LEAST * PARTS + 1 }, (_, index) => Math.exp(-index / PARTS));

/**
 * exp(x) for x <= 0, with a relative error below 1e-12: a tabled power times the first terms of the series of the rest. A sum
 * over a vocabulary takes a fifth of the time that it takes with Math.exp. NaN stays NaN.
 * @param {number} x
 */
function power(x) {
  if (x < LEAST) return 0;
  const index = (-x * PARTS) | 0, rest = x + index / PARTS; // between -1 / PARTS and 0
  return POWERS[index] * (1 + rest * (1 + rest * (1 / 2 + rest * (1 / 6 + rest * (1 / 24 + rest / 120)))));
}
