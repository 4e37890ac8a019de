// @ts-check
// The runs that can be chosen, and what is known about them.

import { label } from "../i18n.js";
import { language } from "../language.js";
import { engine } from "./asking.js";
import { state } from "./state.js";

/** @typedef {import("../engine/interface.js").Run} Run */
/** @typedef {import("../engine/interface.js").Description} Description */

/** @type {Run[]} */
export const runs = [];

export const runNamed = (/** @type {string} */ name) => runs.find((run) => run.name === name);

/** A run that translates back. @param {Run} run */
export const oppositeOf = (run) => runs.find(({ source, target }) => source === run.target && target === run.source);

/** @type {Map<string, Description>} */
const descriptions = new Map();

/** Descriptions that are being fetched; callers in the meantime share the promise. @type {Map<string, Promise<Description>>} */
const describing = new Map();

/** @param {string} run */
export async function describe(run) {
  const known = descriptions.get(run);
  if (known) return known;
  const asked = describing.get(run) ?? engine.describe(run, new AbortController().signal);
  describing.set(run, asked);
  try {
    const description = await asked;
    descriptions.set(run, description);
    return description;
  } finally {
    describing.delete(run); // after an error, it can be asked again
  }
}

/** Whether a row at the selected site sees only what comes before it, as in an LSTMN: only the Transformer's rows see themselves. @param {string} run */
export function seesOnlyPast(run) {
  const model = descriptions.get(run)?.model;
  return model !== undefined && model !== "Transformer" && state.site.endsWith("_self");
}

/** What a known run is at the selected site, in a sentence. @param {string} run */
export function aboutRun(run) {
  const description = descriptions.get(run), site = description?.sites[state.site];
  if (!description || !site) return "";
  // The names of the command line, such as scaled_dot.
  const names = [site.scorer, site.window, site.normalizer].map((name) => name === "NoScore" ? "none" : name.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase());
  const format = description.quantization === "int8" ? label("inEightBits") : "";
  return label("about", run, description.model, label(state.site), ...names, description.parameters.toLocaleString(language), format);
}
