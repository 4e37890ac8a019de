// The state of the page. It is kept in the address, so a link opens the same view.

import { language } from "/page/text.js";

export const MEAN = "mean";
export const SITES = ["encoder_self", "decoder_self", "cross"];

const DEFAULTS = {
  run: "", second: "", text: "",
  site: "cross", layer: MEAN, head: MEAN, otherLayer: MEAN, otherHead: MEAN,
  unit: "pieces", view: "heat", difference: false,
  beamSize: null, lengthPenalty: null,
  changes: [], prefix: [], row: null, column: null, of: "intact",
  method: "", contrast: "",
  pair: "", guess: [], revealed: false,
};
// `of` names the map in which row and column are selected. Each item of `changes` is {key, says, place, changes}: the
// changes to ask the server for, and their label. `method` and `contrast` belong to the attribution, if it is open.
export const state = structuredClone(DEFAULTS);

// With `isNew`, the browser's Back button returns to the previous address.
export function writeAddress(isNew = false) {
  const address = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    const text = JSON.stringify(value);
    if (text !== JSON.stringify(DEFAULTS[key])) address.set(key, typeof value === "string" ? value : text);
  }
  const [link, old] = [`${location.pathname}${location.search}#${address}`, location.hash.length > 1];
  history[isNew && old ? "pushState" : "replaceState"](null, "", link);
  const query = new URLSearchParams(location.search);
  query.set("lang", language === "vi" ? "en" : "vi");
  document.getElementById("language").href = `?${query}#${address}`;
}

// A value in the address that cannot be read is replaced by its default.
export function readAddress(runs) {
  const address = new URLSearchParams(location.hash.slice(1));
  Object.assign(state, structuredClone(DEFAULTS));
  for (const [key, fallback] of Object.entries(DEFAULTS)) {
    const text = address.get(key);
    if (text === null) continue;
    if (typeof fallback === "string" && fallback !== MEAN) { state[key] = text; continue; }
    const value = text === MEAN ? MEAN : parsed(text);
    const fits = Array.isArray(fallback) ? Array.isArray(value)
      : typeof fallback === "boolean" ? typeof value === "boolean"
      : value === fallback || (key === "lengthPenalty" ? typeof value === "number" && value >= 0 : Number.isInteger(value) && value >= 0);
    if (fits) state[key] = value;
  }
  const known = (name) => runs.some((run) => run.name === name);
  if (!known(state.run)) state.run = runs[0].name;
  if (!known(state.second)) state.second = "";
  if (!["intact", "changed", "other"].includes(state.of)) state.of = "intact";
  state.changes = state.changes.filter((each) => Array.isArray(each?.says) && each.place?.site && Array.isArray(each.changes));
  state.prefix = state.prefix.filter(Number.isInteger);
  state.guess = state.guess.filter((link) => Array.isArray(link) && link.length === 2 && link.every(Number.isInteger));
}

function parsed(text) {
  try { return JSON.parse(text); } catch { return null; }
}
