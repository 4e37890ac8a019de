// @ts-check
// The matrix product in WebAssembly, whose SIMD instructions compute four float32 numbers at once. The program is
// assembled here from its instructions. Where a browser refuses it, vectors.js computes the same products.

/** @typedef {import("./vectors.js").Vector} Vector */
/** @typedef {import("./vectors.js").Matrix} Matrix */

// The numbers of the WebAssembly specification 2.0, section 5.4. SIMD instructions have a prefix.
const I32 = 0x7f, V128 = 0x7b, FUNCTION = 0x60, NOTHING = 0x40;
const SIMD = 0xfd;
/** A number in base 128, the lowest digit first. @param {number} number @returns {number[]} */
const digits = (number) => number < 128 ? [number] : [number % 128 + 128, ...digits(Math.floor(number / 128))];
/** Bytes after their number. @param {number[]} bytes */
const sized = (bytes) => [...digits(bytes.length), ...bytes];
/** Items after their number. @param {number[][]} items */
const listed = (items) => [...digits(items.length), ...items.flat()];
const named = (/** @type {string} */ name) => sized([...new TextEncoder().encode(name)]);

const get = (/** @type {number} */ local) => [0x20, local];
const set = (/** @type {number} */ local) => [0x21, local];
/** Adds to a pointer; the number is at most 63 or a local's. @param {number} local @param {number[]} number */
const advance = (local, number) => [...get(local), ...number, 0x6a, ...set(local)]; // i32.add
/** An i32 below 8192; the digits of a signed number end with one below 64. @param {number} number */
const constant = (number) => [0x41, ...number < 64 ? [number] : [number % 128 + 128, Math.floor(number / 128)]];
/** Repeats while the pointer is below the end. @param {number[]} body @param {number} local @param {number} end */
const loop = (body, local, end) => [0x03, NOTHING, ...body, ...get(local), ...get(end), 0x49, 0x0d, 0, 0x0b]; // i32.lt_u, br_if
/** v128.load at a pointer and an offset. @param {number} local @param {number} offset */
const load = (local, offset) => [...get(local), SIMD, 0, 0, ...digits(offset)];
const ZERO = [SIMD, 12, ...new Array(16).fill(0)]; // v128.const
const LOAD_8_BYTES = [SIMD, 1, 0, 0]; // v128.load8x8_s: int8 to int16
const LOW_HALF = [SIMD, ...digits(167)], HIGH_HALF = [SIMD, ...digits(168)]; // i32x4.extend: int16 to int32
const TO_FLOATS = [SIMD, ...digits(250)]; // f32x4.convert_i32x4_s
const ADD = [SIMD, ...digits(228)], MULTIPLY = [SIMD, ...digits(230)]; // f32x4.add, f32x4.mul
/** The sum of the four numbers of a local. @param {number} local */
const total = (local) => [0, 1, 2, 3].flatMap((lane) => [...get(local), SIMD, 31, lane, ...lane ? [0x92] : []]); // f32x4.extract_lane, f32.add
/** Stores the number on the stack. @param {number} offset */
const STORE = (offset) => [0x38, 0, ...digits(offset)]; // f32.store

const MOST_VECTORS = 5;
/** Columns that one turn of the inner loop reads; the rest of a row is left to JavaScript. */
const STEP = 8;
/** @typedef {"float32" | "int8"} Format */
const SIZES = { float32: 4, int8: 1 };

/** Bytes from a vector to the next one, and from its results to those of the next one. @typedef {{ vectors: number, results: number }} Strides */

/**
 * The function (weights, end of the weights, vectors, results, bytes of a row, of the columns that it reads): the sums
 * over these columns of W x for a number of vectors. It takes rows in pairs, for which it reads the vectors once. Of an odd
 * number of rows, the last one's partner is whatever follows: its results are stored between those of two vectors.
 * @param {Format} format @param {number} number @param {Strides} strides
 */
function productOf(format, number, strides) {
  const [weights, end, vectors, results, ofRow, ofColumns] = [0, 1, 2, 3, 4, 5];
  const [at, atSecond, columnEnd, read] = [6, 7, 8, 9];
  const first = { low: 10, high: 11 }, second = { low: 12, high: 13 }, entries = 14;
  const sums = Array.from({ length: number }, (_, index) => ({ ofFirst: 15 + 2 * index, ofSecond: 16 + 2 * index }));
  /** @param {number} row @param {{ low: number, high: number }} halves */
  const readWeights = (row, { low, high }) => ({
    float32: [...load(row, 0), ...set(low), ...load(row, 16), ...set(high)],
    int8: [
      ...get(row), ...LOAD_8_BYTES, ...set(high),
      ...get(high), ...LOW_HALF, ...TO_FLOATS, ...set(low), ...get(high), ...HIGH_HALF, ...TO_FLOATS, ...set(high),
    ],
  })[format];
  /** sum += weights * entries. @param {number} sum @param {number} four */
  const accumulate = (sum, four) => [...get(entries), ...get(four), ...MULTIPLY, ...get(sum), ...ADD, ...set(sum)];
  /** @param {"low" | "high"} half @param {number} offset */
  const multiplied = (half, offset) => sums.flatMap(({ ofFirst, ofSecond }, index) => [
    ...load(read, offset + strides.vectors * index), ...set(entries), ...accumulate(ofFirst, first[half]), ...accumulate(ofSecond, second[half]),
  ]);
  const columns = [
    ...readWeights(at, first), ...readWeights(atSecond, second), ...multiplied("low", 0), ...multiplied("high", 16),
    ...advance(at, constant(STEP * SIZES[format])), ...advance(atSecond, constant(STEP * SIZES[format])), ...advance(read, constant(2 * 16)),
  ];
  const rows = [
    ...get(weights), ...set(at), ...get(weights), ...get(ofRow), 0x6a, ...set(atSecond), ...get(weights), ...get(ofColumns), 0x6a, ...set(columnEnd), // i32.add
    ...get(vectors), ...set(read),
    ...sums.flatMap(({ ofFirst, ofSecond }) => [...ZERO, ...set(ofFirst), ...ZERO, ...set(ofSecond)]),
    ...loop(columns, at, columnEnd),
    ...sums.flatMap(({ ofFirst, ofSecond }, index) => [ofFirst, ofSecond].flatMap((sum, row) => [...get(results), ...total(sum), ...STORE(strides.results * index + 4 * row)])),
    ...advance(results, constant(2 * 4)), ...advance(weights, get(ofRow)), ...advance(weights, get(ofRow)),
  ];
  const locals = listed([[4, I32], [5 + 2 * number, V128]]);
  return sized([...locals, ...loop(rows, weights, end), 0x0b]);
}

const FORMATS = /** @type {Format[]} */ (["float32", "int8"]);
const NUMBERS = Array.from({ length: MOST_VECTORS }, (_, index) => index + 1);

/** The module: a function such as int8_5 for each format and number of vectors. @param {Strides} strides */
function assembled(strides) {
  const functions = FORMATS.flatMap((format) => NUMBERS.map((number) => ({ name: `${format}_${number}`, body: productOf(format, number, strides) })));
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...[1, ...sized(listed([[FUNCTION, ...listed(new Array(6).fill([I32])), 0]]))], // types
    ...[2, ...sized(listed([[...named("engine"), ...named("memory"), 2, 0, 0]]))], // imports
    ...[3, ...sized(listed(functions.map(() => [0])))], // functions, all of the type 0
    ...[7, ...sized(listed(functions.map(({ name }, index) => [...named(name), 0, ...digits(index)])))], // exports
    ...[10, ...sized(listed(functions.map(({ body }) => body)))], // code
  ]);
}

const PAGE = 65536;
const LINE = 64;
/** Bytes for float32 numbers in whole lines of the processor's cache, and one more: vectors whose distance is a power of two would displace each other. @param {number} length */
const strideOf = (length) => (Math.ceil(4 * length / LINE) + 1) * LINE;

/** A memory with the bytes of matrices, whose products are computed in place. */
export class Simd {
  #functions;
  #start;
  #floats;
  #strides;

  /** @param {ArrayBuffer} bytes @param {number} mostRows @param {number} mostColumns of a matrix */
  constructor(bytes, mostRows, mostColumns) {
    this.#strides = { vectors: strideOf(mostColumns), results: strideOf(mostRows) };
    const room = MOST_VECTORS * (this.#strides.vectors + this.#strides.results);
    const memory = new WebAssembly.Memory({ initial: Math.ceil((bytes.byteLength + room + 16) / PAGE) });
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(assembled(this.#strides)), { engine: { memory } });
    this.#functions = /** @type {Record<string, (...numbers: number[]) => void>} */ (exports);
    this.#start = Math.ceil(bytes.byteLength / 16) * 16;
    this.bytes = memory.buffer;
    new Uint8Array(this.bytes).set(new Uint8Array(bytes));
    this.#floats = new Float32Array(this.bytes);
  }

  /** W x for each x, without the scales of W. @param {Matrix} matrix @param {Vector[]} vectors @param {Vector[]} results */
  multiply({ rows, columns, values }, vectors, results) {
    const whole = columns - columns % STEP;
    for (let first = 0; first < vectors.length; first += MOST_VECTORS) {
      const number = Math.min(MOST_VECTORS, vectors.length - first);
      if (whole) this.#multiplySome({ rows, columns, values }, whole, vectors, results, first, number);
      if (whole < columns) addRest({ rows, columns, values }, whole, vectors, results, first, number);
    }
  }

  /** @param {Pick<Matrix, "rows" | "columns" | "values">} matrix @param {number} whole @param {Vector[]} vectors @param {Vector[]} results @param {number} first @param {number} number */
  #multiplySome({ rows, columns, values }, whole, vectors, results, first, number) {
    const inputs = this.#start, outputs = inputs + MOST_VECTORS * this.#strides.vectors;
    for (let index = 0; index < number; index++) this.#floats.set(vectors[first + index], (inputs + index * this.#strides.vectors) / 4);
    const size = values.BYTES_PER_ELEMENT, start = values.byteOffset;
    const product = this.#functions[`${size === 1 ? "int8" : "float32"}_${number}`];
    product(start, start + rows * columns * size, inputs, outputs, columns * size, whole * size);
    for (let index = 0; index < number; index++) {
      const from = (outputs + index * this.#strides.results) / 4;
      results[first + index].set(this.#floats.subarray(from, from + rows));
    }
  }
}

/** Adds the sums over the columns from `whole` on. @param {Pick<Matrix, "rows" | "columns" | "values">} matrix @param {number} whole @param {Vector[]} vectors @param {Vector[]} results @param {number} first @param {number} number */
function addRest({ rows, columns, values }, whole, vectors, results, first, number) {
  for (let index = first; index < first + number; index++) {
    const vector = vectors[index], result = results[index];
    for (let row = 0; row < rows; row++) for (let column = whole; column < columns; column++) result[row] += values[row * columns + column] * vector[column];
  }
}
