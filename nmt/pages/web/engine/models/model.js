// @ts-check
// What all models share: a step of a search, and a forced translation with everything that it attends to.
// As nmt/models/base.py and nmt/insight/forced_maps.py.

import { Bahdanau } from "./bahdanau.js";
import { Luong } from "./luong.js";
import { Transformer } from "./transformer.js";
import { linear, logSoftmax } from "./vectors.js";

/** @typedef {import("./vectors.js").Vector} Vector */
/** @typedef {import("./weights.js").Weights} Weights */
/** @typedef {import("./attention.js").Attention} Attention */
/** @typedef {import("./attention.js").Attended} Attended */
/** @typedef {import("./attention.js").Watch} Watch */
/** @typedef {import("./attention.js").About & { layers: number, heads: number }} SiteAbout */
/** The Watch of a layer at a site. @typedef {(site: string, layer: number) => Watch} WatchSite */
/**
 * What a model is made of; see nmt/exports/page_file.py, which writes it.
 * @typedef {object} Structure
 * @property {string} model the name of its class
 * @property {Record<string, SiteAbout>} sites
 * @property {number} layers of a recurrent model
 * @property {string} [encoder] of a recurrent model
 * @property {string} [decoder] of Luong's
 * @property {boolean} input_feeding
 * @property {string} norm
 * @property {number} norm_eps
 * @property {boolean} norm_first
 */
/**
 * @typedef {object} Model
 * @property {import("./vectors.js").Linear} output
 * @property {Record<string, Attention[]>} sites of each layer
 * @property {(source: number[], watch?: WatchSite) => any} encode
 * @property {(memory: any) => any} start
 * @property {(pieces: number[], states: any[], memory: any, watch?: WatchSite) => { features: Vector[], states: any[] }} advance
 * @property {(pieces: number[], memory: any, watch?: WatchSite) => Features} [advanceAll] the same at all positions at once, for a
 *   model whose positions do not wait for each other
 */

export const BOS = 2;
export const EOS = 3;

/** @param {Weights} weights @param {Structure} about @returns {Model} */
export function makeModel(weights, about) {
  /** @type {Record<string, () => Model>} */
  const models = {
    Bahdanau: () => new Bahdanau(weights, about),
    Luong: () => new Luong(weights, about),
    Transformer: () => new Transformer(weights, about),
  };
  return models[about.model]();
}

/** log p of each possible next piece of each hypothesis, in nats, and the new States. @param {Model} model @param {number[]} pieces @param {any[]} states @param {any} memory @param {WatchSite} [watch] */
export function step(model, pieces, states, memory, watch) {
  const { features, states: next } = model.advance(pieces, states, memory, watch);
  return { logProbs: linear(model.output, features).map(logSoftmax), states: next };
}

/** The inputs of the output layer at some positions, and the State after them. @typedef {{ features: Vector[], state: any }} Features */
/** The numbers behind each row of a map, by site and layer. @typedef {Record<string, Attended[][]>} Maps */
/** A source as the decoder attends to it, and the encoder's own maps. @typedef {{ memory: any, maps: Maps }} Reading */

/** A Watch that keeps what the layers of some sites compute. @param {Model} model @param {(site: string) => boolean} isWatched */
function recorded(model, isWatched) {
  /** @type {Maps} */
  const maps = Object.fromEntries(Object.entries(model.sites).filter(([site, layers]) => layers.length && isWatched(site)).map(([site, layers]) => [site, layers.map(() => [])]));
  /** @type {WatchSite} */
  const watch = (site, layer) => (attended) => { maps[site][layer].push(attended); };
  return { maps, watch };
}

/** Reads a source, which several translations may then attend to. @param {Model} model @param {number[]} source ids with EOS @returns {Reading} */
export function read(model, source) {
  const { maps, watch } = recorded(model, (site) => site === "encoder_self");
  return { memory: model.encode(source, watch), maps };
}

/**
 * log p of every piece at each position of a target, EOS included, and what each position attended to.
 * @param {Model} model @param {Reading} reading @param {number[]} target ids without BOS and EOS
 */
export function force(model, { memory, maps: ofEncoder }, target) {
  const { maps, watch } = recorded(model, (site) => site !== "encoder_self");
  return { logProbs: logProbsOf(model, memory, target, watch).logProbs, maps: { ...ofEncoder, ...maps } };
}

/** log p of every piece at each position of a target, the one after it included, and the State then. @param {Model} model @param {any} memory @param {number[]} target ids without BOS and EOS @param {WatchSite} [watch] */
export function logProbsOf(model, memory, target, watch) {
  const { features, state } = featuresOf(model, memory, target, watch);
  return { logProbs: linear(model.output, features).map(logSoftmax), state };
}

/** Reads BOS and a target. @param {Model} model @param {any} memory @param {number[]} target ids without BOS and EOS @param {WatchSite} [watch] @returns {Features} */
export function featuresOf(model, memory, target, watch) {
  const pieces = [BOS, ...target];
  return model.advanceAll ? model.advanceAll(pieces, memory, watch) : featuresInSteps(model, pieces, memory, watch);
}

/** @param {Model} model @param {number[]} pieces @param {any} memory @param {WatchSite} [watch] @returns {Features} */
function featuresInSteps(model, pieces, memory, watch) {
  let state = model.start(memory);
  const features = pieces.map((piece) => {
    const { features: [feature], states: [next] } = model.advance([piece], [state], memory, watch);
    state = next;
    return feature;
  });
  return { features, state };
}
