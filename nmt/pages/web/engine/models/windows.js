// @ts-check
// Windows limit which keys a query may attend to, and may have a prior over them (Luong et al. 2015, section 3.2).
// As nmt/attention/windows.py.

import { dot, linear, rowOf, sigmoid, tanh } from "./vectors.js";

/** @typedef {import("./vectors.js").Vector} Vector */
/** @typedef {import("./weights.js").Weights} Weights */

/**
 * What a query sees: `allowed` keys, the window's center p_t, and log g of a prior g. g multiplies the weights; if
 * `renormalized`, log g is added to the scores instead.
 * @typedef {{ allowed: boolean[], center: number | null, logPrior: number[] | null, renormalized: boolean }} Visible
 */
/** A query before it is split into heads, and its position. @typedef {{ state: Vector, position: number }} Asking */
/**
 * @typedef {object} Window
 * @property {number | null} halfWidth
 * @property {(keys: number, asking: Asking) => Visible[]} look what each head sees of a number of keys
 * @property {(halfWidth: number) => Window} widened the window with another half-width
 */

/** @param {number} keys @param {number} center @param {number} halfWidth */
const near = (keys, center, halfWidth) => Array.from({ length: keys }, (_, position) => Math.abs(position - center) <= halfWidth);

/** All keys. @param {number} heads @returns {Window} */
function globalWindow(heads) {
  return {
    halfWidth: null,
    look: (keys) => new Array(heads).fill({ allowed: new Array(keys).fill(true), center: null, logPrior: null, renormalized: false }),
    widened: (halfWidth) => localM(heads, halfWidth),
  };
}

/** |s - p_t| <= D with p_t = min(t, S - 1): local-m. @param {number} heads @param {number} halfWidth @returns {Window} */
function localM(heads, halfWidth) {
  return {
    halfWidth,
    look(keys, { position }) {
      const center = Math.min(position, Math.max(keys - 1, 0));
      return new Array(heads).fill({ allowed: near(keys, center, halfWidth), center, logPrior: null, renormalized: false });
    },
    widened: (other) => localM(heads, other),
  };
}

/**
 * |s - p_t| <= D with p_t = S sigmoid(v_p . tanh(W_p h_t)), and the prior exp(-(s - p_t)^2 / (2 sigma^2)), sigma = D / 2:
 * local-p (equations 9 and 10). The heads share W_p, and each has its own v_p.
 * @param {Weights} weights @param {number} heads @param {number} halfWidth @param {boolean} renormalized @returns {Window}
 */
function localP(weights, heads, halfWidth, renormalized) {
  const hidden = weights.linear("hidden"); // W_p
  const places = Array.from({ length: heads }, (_, head) => rowOf(weights.matrix("place.weight"), head)); // v_p
  return {
    halfWidth,
    look(keys, { state }) {
      const activation = tanh(linear(hidden, [state])[0]);
      return places.map((place) => {
        const center = keys * sigmoid(dot(place, activation));
        const sigma = halfWidth / 2;
        const logPrior = Array.from({ length: keys }, (_, position) => -((position - center) ** 2) / (2 * sigma ** 2));
        return { allowed: near(keys, center, halfWidth), center, logPrior, renormalized };
      });
    },
    widened: (other) => localP(weights, heads, other, renormalized),
  };
}

/** The window of a class of nmt/attention/windows.py. @param {{ kind: string, half_width?: number, renormalize?: boolean }} about @param {Weights} weights @param {number} heads @returns {Window} */
export function makeWindow(about, weights, heads) {
  const { half_width: halfWidth = 0, renormalize = false } = about;
  /** @type {Record<string, () => Window>} */
  const windows = {
    Global: () => globalWindow(heads),
    LocalM: () => localM(heads, halfWidth),
    LocalP: () => localP(weights, heads, halfWidth, renormalize),
  };
  return windows[about.kind]();
}
