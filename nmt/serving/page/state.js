// What the page shows, kept in the address, so that a link shows the same.

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
// `of` names the map in which row and column are selected. `changes` are {key, says, place, changes}: what is
// asked of the server, and how it is called. `method` and `contrast` are those of the attribution, if it is open.
export const state = structuredClone(DEFAULTS);

// `isNew` keeps the former address for the browser's Back.
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

// Anything in an address that cannot be read has its default.
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
