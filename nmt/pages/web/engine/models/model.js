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
 * @property {(pieces: number[], state: any, memory: any, watch?: WatchSite) => Features} [advanceAll] the same for several pieces of
 *   one hypothesis at once, for a model whose positions do not wait for each other
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

/** The inputs of the output layer at some positions, and the State after each of them. @typedef {{ features: Vector[], states: any[] }} Features */
/** The numbers behind each row of a map, by site and layer. @typedef {Record<string, Attended[][]>} Maps */
/** A source as the decoder attends to it, and the encoder's own maps. @typedef {{ memory: any, maps: Maps }} Reading */
/** log p of every piece at each position of a target, EOS included, the State with which it was predicted, and what it attended to. @typedef {{ logProbs: Vector[], states: any[], maps: Maps }} Forced */
/** A forced translation of which the first `count` positions are computed already. @typedef {{ forced: Forced, count: number }} Before */

/** @type {Before} */
const NOTHING_BEFORE = { forced: { logProbs: [], states: [], maps: {} }, count: 0 };

/** A Watch that keeps what the layers of some sites compute. @param {Model} model @param {(site: string) => boolean} isWatched */
function recorded(model, isWatched) {
  /** @type {Maps} */
  const maps = Object.fromEntries(Object.entries(model.sites).filter(([site, layers]) => layers.length && isWatched(site)).map(([site, layers]) => [site, layers.map(() => [])]));
  /** @type {WatchSite} */
  const watch = (site, layer) => (attended) => { maps[site][layer].push(attended); };
  return { maps, watch };
}

/** Keeps what the decoder attends to. @param {Model} model */
export const recordedDecoder = (model) => recorded(model, (site) => site !== "encoder_self");

/** Reads a source, which several translations may then attend to. @param {Model} model @param {number[]} source ids with EOS @returns {Reading} */
export function read(model, source) {
  const { maps, watch } = recorded(model, (site) => site === "encoder_self");
  return { memory: model.encode(source, watch), maps };
}

/**
 * Forces a target. A position depends on the pieces before it alone, so what was computed before is not computed again.
 * @param {Model} model @param {Reading} reading @param {number[]} target ids without BOS and EOS @param {Before} [before] @returns {Forced}
 */
export function force(model, { memory, maps: ofEncoder }, target, { forced, count } = NOTHING_BEFORE) {
  const { maps, watch } = recordedDecoder(model);
  const { features, states } = featuresFrom(model, count ? forced.states[count - 1] : model.start(memory), [BOS, ...target].slice(count), memory, watch);
  return {
    logProbs: [...forced.logProbs.slice(0, count), ...linear(model.output, features).map(logSoftmax)],
    states: [...forced.states.slice(0, count), ...states],
    maps: { ...ofEncoder, ...Object.fromEntries(Object.entries(maps).map(([site, layers]) => [site, layers.map((rows, layer) => count ? [...forced.maps[site][layer].slice(0, count), ...rows] : rows)])) },
  };
}

/** The inputs of the output layer at each position of a target. @param {Model} model @param {any} memory @param {number[]} target ids without BOS and EOS */
export const featuresOf = (model, memory, target) => featuresFrom(model, model.start(memory), [BOS, ...target], memory).features;

/** Reads pieces, one after another or all at once. @param {Model} model @param {any} state @param {number[]} pieces @param {any} memory @param {WatchSite} [watch] @returns {Features} */
function featuresFrom(model, state, pieces, memory, watch) {
  if (!pieces.length) return { features: [], states: [] };
  if (model.advanceAll) return model.advanceAll(pieces, state, memory, watch);
  /** @type {any[]} */
  const states = [];
  const features = pieces.map((piece, index) => {
    const { features: [feature], states: [next] } = model.advance([piece], [index ? states[index - 1] : state], memory, watch);
    states.push(next);
    return feature;
  });
  return { features, states };
}
