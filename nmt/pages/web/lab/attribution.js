// @ts-check
// What each piece of the run's own translation depends on.

import { element, part } from "../dom.js";
import { annotatedLayout, drawHeatMap } from "../heat_map.js";
import { label } from "../i18n.js";
import { decimal } from "../language.js";
import { columnOf, strongest } from "../map.js";
import { spansOf } from "../words.js";
import { engine, isOutdated, latest, sentenceOf, stop } from "./asking.js";
import { tipOf } from "./maps.js";
import { state, writeAddress } from "./state.js";
import { quoted, signed } from "./wording.js";

/** @typedef {import("../draw.js").Cell} Cell */
/** @typedef {import("../map.js").AttentionMap} AttentionMap */
/** @typedef {import("../engine/interface.js").Attribution} Attribution */
/** @typedef {{ run: string, source: string, ids: number[] }} OwnTranslation the run's own translation, with its run and source */

const METHODS = [...element.method.options].map(({ value }) => value);
const section = element.attributed, verdict = part(section, ".verdict"), container = part(section, ".map");

// The translation, the answer to the question `asked`, and the selection in its map.
/** @type {OwnTranslation | null} */
let translation = null;
/** @type {Attribution | null} */
let answer = null;
let asked = "";
/** @type {Cell | null} */
let selection = null;

const isZeroing = () => state.method === "value_zeroing";
const contrasted = () => isZeroing() ? "" : state.contrast;

/** The box is open if the address names a method. */
export function fitAttribution() {
  if (!METHODS.includes(state.method)) state.method = "";
  element.method.value = state.method || METHODS[0];
  element.contrast.value = state.contrast;
  element["attribution-box"].open = state.method !== "";
}

export function listenToAttribution() {
  const choose = (/** @type {string} */ method, /** @type {string} */ contrast) => {
    Object.assign(state, { method, contrast });
    writeAddress();
    showAttribution(translation);
  };
  element["attribution-box"].addEventListener("toggle", () => {
    const { open } = element["attribution-box"];
    if (open && !state.method) choose(element.method.value, element.contrast.value.trim());
    if (!open && state.method) choose("", "");
  });
  element["attribution-cancel"].addEventListener("click", () => {
    const canceled = asked;
    forgetAttribution();
    asked = canceled; // so that it does not begin again by itself
    say(label("canceled"), { isCanceled: true });
    element["attribution-again"].focus();
  });
  element["attribution-again"].addEventListener("click", () => {
    asked = "";
    showAttribution(translation);
    element["attribution-cancel"].focus();
  });
  element.method.addEventListener("change", () => choose(element.method.value, state.contrast));
  element.contrast.addEventListener("change", () => choose(state.method, element.contrast.value.trim()));
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    selection = null;
    drawAttribution();
  });
}

/** Removes an earlier translation's attribution from the page, and makes the engine stop computing it. */
function forgetAttribution() {
  stop("attribute");
  answer = selection = null;
  asked = "";
  container.replaceChildren();
  section.hidden = true;
}

/** Asks the engine only if the box is open. @param {OwnTranslation | null} intact */
export async function showAttribution(intact) {
  translation = intact?.ids.length ? intact : null;
  element["attribution-box"].hidden = !translation;
  if (!translation || !state.method) { forgetAttribution(); return; }
  showHeading(translation.run);
  const contrast = contrasted();
  const question = {
    run: translation.run, text: translation.source, target_ids: translation.ids, method: state.method, ...contrast ? { contrast } : {},
  };
  const key = JSON.stringify(question);
  if (key !== asked) {
    forgetAttribution();
    asked = key;
    say(label("computing"), { isBusy: true });
    element["attribution-progress"].removeAttribute("value"); // it may have to wait for its turn
    try {
      const attribution = await latest("attribute", (signal) => engine.attribute(question, signal, (percent) => {
        if (asked !== key) return;
        element["attribution-progress"].value = percent;
        element["attribution-percent"].textContent = `${percent} %`;
      }));
      if (asked !== key) return; // a later question has been asked
      answer = attribution;
    } catch (error) {
      if (isOutdated(error) || asked !== key) return;
      asked = "";
      say(sentenceOf(error), { isError: true });
      return;
    }
  }
  drawAttribution();
}

/** @param {string} run */
function showHeading(run) {
  const contrast = contrasted(), names = [run, label(state.method)];
  element["contrast-box"].hidden = isZeroing();
  element["attribution-hint"].textContent = isZeroing() ? label("zeroingHint") : contrast ? label("contrastHint", contrast) : label("attributedHint");
  element["attributed-name"].textContent = contrast ? label("attributedContrast", ...names, contrast) : label("attributed", ...names);
}

/** @param {string} text */
function say(text, { isBusy = false, isError = false, isCanceled = false } = {}) {
  section.hidden = false;
  section.ariaBusy = String(isBusy);
  element["attribution-wait"].hidden = !isBusy;
  element["attribution-again"].hidden = !isCanceled && !isError;
  element["attribution-percent"].textContent = "";
  verdict.classList.toggle("error", isError);
  verdict.textContent = text;
  element.contrast.setAttribute("aria-invalid", String(isError && contrasted() !== ""));
}

export const shownAttribution = () => answer;

export function drawAttribution() {
  if (!answer) return;
  const { outputs: rows, columns, attribution: weights } = answer;
  /** @type {AttentionMap} */
  const map = {
    rows, columns, weights, rowSpans: spansOf(rows, "pieces"), columnSpans: spansOf(columns, "pieces"),
    most: Math.max(...weights.flat().map(Math.abs)), names: [label("target"), label("source")],
  };
  say([selection ? described(map, selection) : "", state.changes.length ? label("stale") : ""].filter(Boolean).join(" "));
  drawHeatMap(container, map, annotatedLayout(container, map), {
    most: map.most, selection, name: element["attributed-name"].textContent ?? "", signed: !isZeroing(), tip: tipOf(map),
    choose: (cell) => { selection = cell; drawAttribution(); },
  });
}

/** @param {AttentionMap} map @param {Cell} cell */
function described(map, { row, column }) {
  const { rows, columns, weights } = map, shown = (/** @type {number} */ value) => isZeroing() ? decimal(value, 3) : signed(value);
  if (row !== null && column !== null) {
    return label(isZeroing() ? "zeroingOf" : "attributionOf", quoted(rows[row]), quoted(columns[column]), shown(weights[row][column]));
  }
  const least = isZeroing() ? 0.0005 : 0.005; // what is not written as 0
  const list = (/** @type {number[]} */ values, /** @type {string[]} */ labels) =>
    strongest(values, labels, 4, least).map(([text, value]) => `${quoted(text)} ${shown(value)}`).join(", ");
  if (row !== null) return label("attributionOfRow", quoted(rows[row]), list(weights[row], columns));
  return column === null ? "" : label("attributionOfColumn", quoted(columns[column]), list(columnOf(map, column), rows));
}
