// @ts-check
// The controls that choose runs, attention, layers, heads and the search, filled with what the runs offer.

import { element, fillSelect, fitHeight } from "../dom.js";
import { label } from "../i18n.js";
import { nameOfLanguage } from "../language.js";
import { MEAN, SITES, choicesOf } from "../map.js";
import { chosenForLayer, placeName } from "./inspector.js";
import { showLegend } from "./results.js";
import { aboutRun, describe, oppositeOf, runNamed, runs } from "./runs.js";
import { state, writeAddress } from "./state.js";

/** @typedef {import("./runs.js").Run} Run */

/** What the map of the first run shows, for the control that changes it. Layer and head are named if the run has several. */
function chosenInWords() {
  const hasOne = element.layer.disabled && element.head.disabled;
  return [hasOne ? label(state.site) : placeName(), label(state.unit)].join(" · ");
}

/** Choices without an alternative, because there was a single layer or head; the next site or run begins with the mean. @type {Set<string>} */
const onlyChoices = new Set();

/** Makes the choices of an address, which may be of a single layer or head. */
export const keepChoices = () => onlyChoices.clear();

/** Replaces a selected site, layer or head that the runs lack with one that they have, and fills the controls. */
export async function fitChoices() {
  const { run, second } = state, { sites, search: settings, embedded } = await describe(run);
  if (run !== state.run) return; // a later call fits the choices to the new run
  element.warning.hidden = !embedded;
  if (!sites[state.site]) state.site = "cross";
  /** @param {"layer" | "head" | "otherLayer" | "otherHead"} key @param {number} count @param {import("../dom.js").PageElement} select */
  const fit = (key, count, select) => {
    const choice = state[key], wasOnly = onlyChoices.delete(key);
    state[key] = count === 1 ? 0 : choice !== MEAN && choice < count && !wasOnly ? choice : MEAN;
    if (count === 1) onlyChoices.add(key);
    fillSelect(select, choicesOf(count).map((number) => [number, number === MEAN ? label("mean") : number]), state[key]);
  };
  fillSelect(element.site, SITES.filter((site) => sites[site]).map((site) => [site, label(site)]), state.site);
  fit("layer", sites[state.site].layers, element.layer);
  fit("head", sites[state.site].heads, element.head);
  const ofSecond = second ? (await describe(second)).sites[state.site] : null;
  if (second !== state.second) return;
  element.about.textContent = [run, second].map(aboutRun).join(" ");
  element.about.hidden = false;
  for (const item of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".of-second"))) item.hidden = !ofSecond;
  if (ofSecond) {
    fit("otherLayer", ofSecond.layers, element["other-layer"]);
    fit("otherHead", ofSecond.heads, element["other-head"]);
  }
  showLegend();
  element.chosen.textContent = chosenInWords();
  element.unit.value = state.unit;
  element.view.value = state.view;
  element.difference.checked = state.difference;
  for (const { field, chosen, configured } of [
    { field: element["beam-size"], chosen: state.beamSize, configured: settings.beam_size },
    { field: element["length-penalty"], chosen: state.lengthPenalty, configured: settings.length_penalty },
  ]) {
    field.value = chosen ?? "";
    field.placeholder = String(configured ?? "");
    field.disabled = configured === null;
  }
  element["layer-box"].hidden = false;
  element["half-width-box"].hidden = state.site !== "cross";
  element.temperature.value = chosenForLayer("temperature") ?? 1;
  fillSelect(element.normalizer, [["", label("asTrained")], ["softmax", "softmax"], ["sparsemax", "sparsemax"]], String(chosenForLayer("normalizer") ?? ""));
  element["half-width"].value = chosenForLayer("half_width") ?? "";
  writeAddress();
}

/** Fills the lists of runs, and says where the page can translate back. */
export function fillRuns() {
  const direction = (/** @type {Run} */ { source, target }) => `${nameOfLanguage(source)} → ${nameOfLanguage(target)}`;
  // A run that is named after its direction needs no second name.
  fillSelect(element.run, runs.map((run) => [run.name, run.name === `${run.source}-${run.target}` ? direction(run) : `${run.name} (${direction(run)})`]), state.run);
  const current = /** @type {Run} */ (runNamed(state.run));
  const others = runs.filter((run) => run !== current && run.source === current.source && run.target === current.target);
  if (!others.some(({ name }) => name === state.second)) state.second = "";
  element["second-box"].hidden = others.length === 0;
  const opposite = oppositeOf(current);
  element.swap.hidden = !opposite;
  element.swap.title = opposite ? label("swapTo", opposite.name, direction(opposite)) : "";
  fillSelect(element.second, [["", label("none")], ...others.map(({ name }) => [name, name])], state.second);
  element.text.lang = current.source;
}

/** @param {string} text */
export function setText(text) {
  element.text.value = text;
  fitHeight(element.text);
}
