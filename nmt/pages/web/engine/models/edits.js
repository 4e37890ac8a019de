// @ts-check
// Edits to a trained attention: new weights for some heads and steps, or another temperature, normalizer or window.
// As nmt/attention/edits.py and nmt/insight/interventions.py.

import { Refusal } from "../messages.js";

/** @typedef {import("./attention.js").Attention} Attention */
/** @typedef {import("./windows.js").Visible} Visible */
/** @typedef {import("./model.js").Model} Model */
/**
 * @typedef {object} Change
 * @property {string} site
 * @property {number | null} [layer]
 * @property {number | null} [head]
 * @property {number[] | null} [steps]
 * @property {string | null} [way]
 * @property {number[]} [columns]
 * @property {number} [factor]
 * @property {number[]} [weights]
 * @property {number} [other_head]
 * @property {number | null} [temperature]
 * @property {string | null} [normalizer]
 * @property {number | null} [half_width]
 */
/** New weights of one head, given those of all heads. @typedef {(weights: number[][], head: number, visible: Visible) => number[]} Way */

const sum = (/** @type {number[]} */ numbers) => numbers.reduce((total, number) => total + number, 0);

/** The prior that multiplies the weight of a key. @param {Visible} visible @param {number} key */
const priorOf = ({ logPrior, renormalized }, key) => logPrior && !renormalized ? Math.exp(logPrior[key]) : 1;

/** @type {Record<string, (change: Change, random: number[]) => Way>} */
const WAYS = {
  // a_i = 0: the head contributes nothing (Michel et al. 2019, section 2.3)
  off: () => (weights, head) => weights[head].map(() => 0),
  // a_i = 1 / (number of allowed keys), times the prior that multiplies weights
  uniform: () => (weights, head, visible) => {
    const number = visible.allowed.filter(Boolean).length || 1;
    return weights[head].map((_, key) => (visible.allowed[key] ? 1 / number : 0) * priorOf(visible, key));
  },
  // The weights of the allowed keys in the order of their random numbers; the prior stays in place
  shuffled: (_, random) => (weights, head, visible) => {
    const keys = [...weights[head].keys()].filter((key) => visible.allowed[key]);
    const order = keys.slice().sort((a, b) => random[a] - random[b]);
    const shuffled = weights[head].map(() => 0);
    for (const [index, key] of keys.entries()) shuffled[key] = weights[head][order[index]] / priorOf(visible, order[index]) * priorOf(visible, key);
    return shuffled;
  },
  weights: ({ weights: given = [] }) => (weights, head, { allowed }) => weights[head].map((_, key) => allowed[key] ? given[key] ?? 0 : 0),
  head: ({ other_head: other = 0 }) => (weights) => weights[other],
  // Some keys times a factor, then the row scaled to its former sum
  scale: ({ columns = [], factor = 0 }) => (weights, head, { allowed }) => {
    const chosen = new Set(columns), total = sum(weights[head]);
    let scaled = weights[head].map((weight, key) => chosen.has(key) ? weight * factor : weight);
    if (sum(scaled) <= 0) scaled = scaled.map((_, key) => allowed[key] && !(chosen.has(key) && factor === 0) ? 1 : 0);
    const now = sum(scaled);
    return scaled.map((weight) => now > 0 ? weight * total / now : 0);
  },
};

/** What a function returns while some attentions have an edit. @template T @param {Attention[]} attentions @param {import("./attention.js").Edit} edit @param {() => T} action */
export function edited(attentions, edit, action) {
  for (const attention of attentions) attention.edits = [...attention.edits, edit];
  try { return action(); } finally {
    for (const attention of attentions) attention.edits = attention.edits.slice(0, -1);
  }
}

/** The first piece of the translation that a change can affect. @param {Change} change */
export function firstStep({ site, steps }) {
  return steps && site !== "encoder_self" ? Math.min(...steps.length ? steps : [0]) : 0;
}

/** Does something with a changed model, and changes it back. @template T @param {Model} model @param {Change[]} changes @param {number[]} random a number for each position @param {() => Promise<T>} action */
export async function intervened(model, changes, random, action) {
  const attentions = Object.values(model.sites).flat();
  const before = attentions.map(({ edits, normalizer, temperature, window }) => ({ edits, normalizer, temperature, window }));
  try {
    for (const change of changes) for (const attention of selected(model, change)) apply(attention, change, random);
    return await action();
  } finally {
    for (const [index, attention] of attentions.entries()) Object.assign(attention, before[index]);
  }
}

/** The attentions of the layers that a change names. @param {Model} model @param {Change} change */
function selected(model, { site, layer, head, other_head: other, way }) {
  const layers = model.sites[site] ?? [];
  if (layer != null && !layers[layer]) throw new Refusal("noSite", layer);
  for (const index of [head, way === "head" ? other : null]) if (index != null && !(index < (layers[0]?.heads ?? 0))) throw new Refusal("noSite", index);
  return layers.filter((_, index) => layer == null || layer === index);
}

/** @param {Attention} attention @param {Change} change @param {number[]} random */
function apply(attention, change, random) {
  const { site, head, steps, way, temperature, normalizer, half_width: halfWidth } = change;
  const changesLayer = temperature != null || normalizer != null || halfWidth != null;
  // `firstStep` trusts that what comes before the steps of a change is as it was.
  if (changesLayer && (head != null || steps != null)) throw new Refusal("wholeLayer");
  if (temperature != null && !(temperature > 0 && Number.isFinite(temperature))) throw new Refusal("badTemperature", temperature);
  if (halfWidth != null && site !== "cross") throw new Refusal("noWindow", site);
  const least = attention.about.window.kind === "LocalP" ? 1 : 0; // sigma = D / 2 must not be 0
  if (halfWidth != null && !(halfWidth >= least)) throw new Refusal("badWidth", halfWidth, least);
  if (way) {
    if (!Object.hasOwn(WAYS, way)) throw new Refusal("badChange", way);
    const newWeights = WAYS[way](change, random);
    attention.edits = [...attention.edits, (weights, visible, position) => weights.map((ofHead, index) => (
      (head == null || head === index) && (!steps || steps.includes(position)) ? newWeights(weights, index, visible[index]) : ofHead))];
  }
  if (temperature != null) attention.temperature *= temperature;
  if (normalizer) attention.normalizer = normalizer === "softmax" ? "Softmax" : "Sparsemax";
  if (halfWidth != null) attention.window = attention.window.widened(halfWidth);
}
