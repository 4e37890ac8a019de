// @ts-check
// Attributions by forward passes alone: how much each source piece matters for each piece of a given translation.
// As nmt/insight/attribution.py.

import { edited } from "../models/edits.js";
import { EOS, featuresOf, force, read } from "../models/model.js";
import { HIDDEN, dot } from "../models/vectors.js";

/** @typedef {import("../models/model.js").Model} Model */
/** Waits, and fails if nobody waits for the answer. @typedef {() => Promise<void>} Pause */
/** Rows are the pieces of the translation with EOS, columns those of the source with EOS. @typedef {(model: Model, source: number[], target: number[], contrast: number | null, pause: Pause) => Promise<number[][]>} Method */

/** @param {number[][]} columns @returns {number[][]} */
const turned = (columns) => columns[0].map((_, row) => columns.map((column) => column[row]));

/**
 * a_tj = f_t(x) - f_t(x with e_j = 0) (Zeiler & Fergus 2014, section 4.2, for pieces instead of patches), where f_t is
 * log p(y_t | y_<t, x), less log p(contrast | y_<t, x) if there is a contrast (Yin & Neubig 2022).
 * @type {Method}
 */
async function occlusion(model, source, target, contrast, pause) {
  /** f_t of the sentence with some pieces hidden. @param {number[]} pieces */
  const f = (pieces) => {
    const { logProbs } = force(model, read(model, pieces), target);
    return [...target, EOS].map((id, t) => logProbs[t][id] - (contrast === null ? 0 : logProbs[t][contrast]));
  };
  const whole = [...source, EOS], intact = f(whole);
  const columns = [];
  for (const j of whole.keys()) {
    await pause();
    const without = f(whole.map((id, position) => position === j ? HIDDEN : id));
    columns.push(intact.map((value, t) => value - without[t]));
  }
  return turned(columns);
}

/**
 * a_tj = 1 - cos(o_t, o_t with v_j = 0), where o_t is the input of the output layer and v_j are the values of source
 * piece j in all layers (value zeroing; Mohebbi et al. 2023, section 3, for cross attention).
 * @type {Method}
 */
async function valueZeroing(model, source, target, _, pause) {
  const { memory } = read(model, [...source, EOS]);
  /** o_t / |o_t|. */
  const directions = () => featuresOf(model, memory, target).map((feature) => {
    const length = Math.sqrt(dot(feature, feature));
    return feature.map((entry) => entry / length);
  });
  const intact = directions();
  const columns = [];
  for (let j = 0; j <= source.length; j++) {
    await pause();
    // A context with v_j = 0 is one with a_j = 0.
    const changed = edited(model.sites.cross, (weights) => weights.map((ofHead) => ofHead.map((weight, key) => key === j ? 0 : weight)), directions);
    // Half the squared distance of two directions is 1 - cos, without cancellation.
    columns.push(intact.map((one, t) => one.reduce((sum, entry, index) => sum + (entry - changed[t][index]) ** 2, 0) / 2));
  }
  return turned(columns);
}

/** @type {Record<string, Method>} */
export const METHODS = { occlusion, value_zeroing: valueZeroing };
