// @ts-check
// All heads at a glance: a small map of every layer and head of the selected site. A click selects it for the large map.

import { scale } from "../colors.js";
import { clamp, element, hit, listenToTable, make } from "../dom.js";
import { leastWidth } from "../heat_map.js";
import { label } from "../i18n.js";
import { decimal } from "../language.js";
import { MEAN, choiceOf, choicesOf, entropyOf } from "../map.js";
import { thumbnail } from "../thumbnail.js";
import { engine, latest } from "./asking.js";
import { hasKnownAlignment } from "./guess.js";
import { selectedMap } from "./maps.js";
import { drawAgain } from "./signals.js";
import { state, subject } from "./state.js";
import { complain } from "./status.js";

/** @typedef {import("../map.js").AttentionMap} AttentionMap */
/** @typedef {import("../map.js").Choice} Choice */
/** @typedef {import("../engine/interface.js").SiteMaps} SiteMaps */
/**
 * @typedef {object} HeadsOfRun what one table shows
 * @property {string} run
 * @property {SiteMaps} maps
 * @property {Choice} layer the selected ones
 * @property {Choice} head
 * @property {"layer" | "otherLayer"} layerKey what a click changes in the state
 * @property {"head" | "otherHead"} headKey
 */

const LEAST = 28, MOST = 54, MOST_IN_LARGE_WINDOW = 76, GAP = 10, BETWEEN_TABLES = 28;
const GAP_IN_STRIP = 6, NAME_IN_STRIP = 20, MOST_IN_STRIP = 44;
const large = matchMedia("(min-width: 1600px) and (min-height: 900px)"), wide = matchMedia("(min-width: 1000px)");
/** The most of the room that all heads get beside a map, the gap between them, and the width of the layers' names. */
const SHARE_BESIDE = 0.42, GAP_BESIDE = 20, LAYER_NAMES = 62;
const mostBeside = () => large.matches ? MOST_IN_LARGE_WINDOW : MOST;
const roomOfMaps = () => element.maps.clientWidth - 32;
const hasSeveral = (/** @type {HeadsOfRun} */ { maps: { weights } }) => weights.length * weights[0].length > 1;
/** Whether a single map would have to be scrolled if all heads were beside it. @param {AttentionMap} map @param {HeadsOfRun[]} shown */
export function isWide(map, shown) {
  if (!wide.matches || state.view === "lines") return false;
  const columns = Math.max(0, ...shown.filter(hasSeveral).map(({ maps }) => choicesOf(maps.weights[0].length).length));
  const heads = Math.min(SHARE_BESIDE * roomOfMaps(), LAYER_NAMES + columns * (mostBeside() + GAP));
  return columns > 0 && leastWidth(map) > roomOfMaps() - heads - GAP_BESIDE;
}
/** Whether all heads are a strip below several maps or a wide one, which stays in the window; else they are beside the map, or below it on a narrow page. */
export const isStrip = () => wide.matches && element.results.classList.contains("whole-width");
/** @type {number[][]} */
const NO_RATES = [];

/** What the tables were drawn from. @type {unknown[]} */
let drawnFrom = [];

/** The alignment error rate of each layer and head, where the alignment of the sentence is known. @type {Map<string, number[][]>} */
const errorRates = new Map();
const rateKey = (/** @type {string} */ run) => JSON.stringify([run, subject.source]);

/** @param {string} run */
async function askErrorRates(run) {
  const key = rateKey(run), question = { run, text: subject.source, guess: [], layer: null, head: null };
  errorRates.set(key, []); // asked
  try { errorRates.set(key, (await latest(`error rates ${run}`, (signal) => engine.align(question, signal))).error_rates); } catch (error) {
    errorRates.delete(key);
    complain(error);
    return;
  }
  if (rateKey(run) === key) drawAgain(); // the error rates need room
}

const nameOf = (/** @type {string} */ kind, /** @type {Choice} */ choice) => choice === MEAN ? label(kind === "layer" ? "meanOfLayers" : "meanOfHeads") : `${label(kind)} ${choice}`;

/** The width and height of the maps in a table. @param {HeadsOfRun} shown @param {number} room in pixels */
function sizeOf({ maps: { weights } }, room) {
  const layers = choicesOf(weights.length).length, heads = choicesOf(weights[0].length).length, [[rows]] = weights;
  const size = isStrip() ? clamp(Math.floor((room / layers - NAME_IN_STRIP) / heads) - GAP_IN_STRIP, MOST_IN_STRIP, LEAST)
    : clamp(Math.floor(room / heads) - GAP, mostBeside(), LEAST);
  return [size, Math.round(clamp(size * rows.length / rows[0].length, size * 1.2, size * 0.7))];
}

/** @param {HeadsOfRun} shown @param {number[][]} rates */
function tableOf({ run, maps, layer, head, layerKey, headKey }, rates) {
  const layers = choicesOf(maps.weights.length), heads = choicesOf(maps.weights[0].length);
  const drawn = layers.map((ofLayer) => heads.map((ofHead) => selectedMap(maps, ofLayer, ofHead)));
  const most = Math.max(...drawn.flat().map((map) => map.most)) || 1;
  const cell = (/** @type {Choice} */ ofLayer, /** @type {Choice} */ ofHead, /** @type {number} */ l, /** @type {number} */ h) => {
    const { weights } = drawn[l][h], entropy = entropyOf(selectedMap(maps, ofLayer, ofHead, "pieces").weights);
    const rate = ofLayer === MEAN || ofHead === MEAN ? undefined : rates[ofLayer]?.[ofHead], isChosen = ofLayer === layer && ofHead === head;
    const written = entropy === null ? "–" : decimal(entropy, 2);
    const says = [`${nameOf("layer", ofLayer)}, ${nameOf("head", ofHead)}`, label("entropyIs", written), ...rate === undefined ? [] : [label("rateIs", decimal(rate, 2))]].join("; ");
    const picture = thumbnail(weights, most);
    const button = make("button", {
      type: "button", "data-layer": ofLayer, "data-head": ofHead, "data-layer-key": layerKey, "data-head-key": headKey, "aria-pressed": isChosen,
      "aria-label": says, title: says, tabindex: isChosen ? 0 : -1, ...entropy === null ? {} : { "data-entropy": entropy.toFixed(6) }, ...rate === undefined ? {} : { "data-aer": rate },
    }, picture, make("span", {}, written), ...rate === undefined ? [] : [make("span", { class: "aer" }, decimal(rate, 2))]);
    return make("td", {}, button);
  };
  const title = (/** @type {string} */ kind, /** @type {Choice} */ choice, /** @type {number} */ at) => choice === MEAN ? label("meanShort") : `${at <= 1 ? `${label(kind === "head" ? "headShort" : kind)} ` : ""}${choice}`;
  const heading = (/** @type {"row" | "col"} */ scope, /** @type {string} */ kind, /** @type {Choice} */ choice, /** @type {number} */ at) => make("th", { scope, title: nameOf(kind, choice) }, title(kind, choice, at));
  return make("table", { class: "heads", "aria-label": label("headsOf", label(state.site), run) },
    make("thead", {}, make("tr", {}, make("td"), ...heads.map((choice, h) => heading("col", "head", choice, heads.length === 1 ? 0 : h)))),
    make("tbody", {}, ...layers.map((ofLayer, l) => make("tr", {}, heading("row", "layer", ofLayer, layers.length === 1 ? 0 : l),
      ...heads.map((ofHead, h) => cell(ofLayer, ofHead, l, h))))));
}

/**
 * Draws a table for each run, except those with a single head, unless it is there already.
 * @param {HeadsOfRun[]} shown
 */
export function drawHeads(shown) {
  const several = shown.filter(hasSeveral);
  const focused = element["heads-tables"].contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset : null;
  element.heads.hidden = several.length === 0;
  if (element.heads.hidden) return;
  const isKnown = state.site === "cross" && hasKnownAlignment(subject.source);
  for (const { run } of isKnown ? several : []) if (!errorRates.has(rateKey(run))) askErrorRates(run);
  const width = roomOfMaps();
  const room = isStrip() ? (width - BETWEEN_TABLES * (several.length - 1)) / several.length : (wide.matches ? SHARE_BESIDE * width : width) - LAYER_NAMES;
  const rates = several.map(({ run }) => isKnown ? errorRates.get(rateKey(run)) ?? NO_RATES : NO_RATES);
  /** A table may get more or less room without being drawn again. */
  const fit = () => element["heads-tables"].querySelectorAll("table").forEach((table, i) => {
    const [wide, high] = sizeOf(several[i], room);
    table.style.setProperty("--wide", `${wide}px`);
    table.style.setProperty("--high", `${high}px`);
  });
  const from = [state.unit, scale(), ...several.flatMap(({ run, maps, layer, head }, i) => [run, maps, layer, head, rates[i]])];
  if (from.length === drawnFrom.length && from.every((value, i) => value === drawnFrom[i])) { fit(); return; }
  drawnFrom = from;
  element["heads-tables"].replaceChildren(...several.map((one, i) => make("div", { class: "scroll" }, ...several.length > 1 ? [make("h3", {}, one.run)] : [], tableOf(one, rates[i]))));
  fit();
  element["heads-hint"].textContent = label(rates.some((rate) => rate.length) ? "headsHintRates" : "headsHint");
  const wanted = focused && element["heads-tables"].querySelector(`[data-layer-key="${focused.layerKey}"][data-layer="${focused.layer}"][data-head="${focused.head}"]`);
  if (wanted) /** @type {HTMLElement} */ (wanted).focus({ preventScroll: true });
  // Without a selected map in view, the first one can be reached by the Tab key.
  for (const table of element["heads-tables"].querySelectorAll("table")) if (!table.querySelector("[tabindex='0']")) /** @type {HTMLElement | null} */ (table.querySelector("button"))?.setAttribute("tabindex", "0");
}

/** @param {(choice: Partial<import("./state.js").State>) => void} choose */
export function listenToHeads(choose) {
  element["heads-tables"].addEventListener("click", (event) => {
    const { layer, head, layerKey, headKey } = hit(event, "button")?.dataset ?? {};
    if (layer === undefined || head === undefined || !layerKey || !headKey) return;
    choose({ [layerKey]: choiceOf(layer), [headKey]: choiceOf(head) });
  });
  listenToTable(element["heads-tables"]);
}
