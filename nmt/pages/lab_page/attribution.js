// What each piece of the run's own translation depends on.

import { clean, element, signed } from "/page/element.js";
import { drawHeat } from "/page/heat.js";
import { ask, isOutdated, sentenceOf, stop } from "/page/server.js";
import { state, writeAddress } from "/page/state.js";
import { label } from "/page/text.js";

const PATH = "/v1/attribute", METHODS = [...element.method.options].map(({ value }) => value);
const section = element.attributed, verdict = section.querySelector(".verdict"), place = section.querySelector(".map");

// The translation, the server's answer to the question `asked`, and the selection in its map.
let translation = null, found = null, asked = "", selection = null;

const isZeroing = () => state.method === "value_zeroing";
const contrasted = () => isZeroing() ? "" : state.contrast;

// The box is open if the address names a method.
export function fitAttribution() {
  if (!METHODS.includes(state.method)) state.method = "";
  element.method.value = state.method || METHODS[0];
  element.contrast.value = state.contrast;
  element["attribution-box"].open = state.method !== "";
}

export function listenToAttribution() {
  const choose = (method, contrast) => {
    Object.assign(state, { method, contrast });
    writeAddress();
    showAttribution(translation);
  };
  element["attribution-box"].addEventListener("toggle", ({ target }) => {
    if (target.open && !state.method) choose(element.method.value, element.contrast.value.trim());
    if (!target.open && state.method) choose("", "");
  });
  element.method.addEventListener("change", ({ target }) => choose(target.value, state.contrast));
  element.contrast.addEventListener("change", ({ target }) => choose(state.method, target.value.trim()));
  document.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    selection = null;
    drawAttribution();
  });
}

// Removes an earlier translation's attribution from the page, and makes the server stop computing it.
function forgetAttribution() {
  stop(PATH);
  [found, asked, selection] = [null, "", null];
  place.replaceChildren();
  section.hidden = true;
}

// `intact` is the run's own translation with its run and source; null if there is none. Asks the server only if the
// box is open.
export async function showAttribution(intact) {
  translation = intact?.ids.length ? intact : null;
  element["attribution-box"].hidden = !translation;
  if (!translation || !state.method) { forgetAttribution(); return; }
  showHeading();
  const { run, source, ids } = intact, contrast = contrasted();
  const question = { run, text: source, target_ids: ids, method: state.method, ...contrast ? { contrast } : {} };
  const key = JSON.stringify(question);
  if (key !== asked) {
    forgetAttribution();
    asked = key;
    say(label("computing"), { isBusy: true });
    try {
      const answer = await ask(PATH, question);
      if (asked !== key) return; // a later question has been asked
      found = answer;
    } catch (error) {
      if (isOutdated(error) || asked !== key) return;
      asked = "";
      say(sentenceOf(error), { isError: true });
      return;
    }
  }
  drawAttribution();
}

function showHeading() {
  const contrast = contrasted(), names = [translation.run, label(state.method)];
  element["contrast-box"].hidden = isZeroing();
  element["attribution-hint"].textContent = isZeroing() ? label("zeroingHint") : contrast ? label("contrastHint", contrast) : label("attributedHint");
  element["attributed-name"].textContent = contrast ? label("attributedContrast", ...names, contrast) : label("attributed", ...names);
}

function say(text, { isBusy = false, isError = false } = {}) {
  section.hidden = false;
  section.ariaBusy = String(isBusy);
  verdict.classList.toggle("error", isError);
  verdict.textContent = text;
  element.contrast.setAttribute("aria-invalid", isError && contrasted() !== "");
}

export const shownAttribution = () => found;

export function drawAttribution() {
  if (!found) return;
  const { outputs, columns, attribution: weights } = found;
  const map = { rows: outputs, columns, weights, names: [label("target"), label("source")], isBlocked: () => false };
  say([selection ? described(map) : "", state.changes.length ? label("stale") : ""].filter(Boolean).join(" "));
  drawHeat(place, map, {
    most: Math.max(...weights.flat().map(Math.abs)), selection, name: element["attributed-name"].textContent, signed: !isZeroing(),
    choose: (chosen) => { selection = chosen; drawAttribution(); },
  });
}

function described({ rows, columns, weights }) {
  const { row, column } = selection, shown = (value) => isZeroing() ? value.toFixed(3) : signed(value);
  if (row !== null && column !== null) {
    return label(isZeroing() ? "zeroingOf" : "attributionOf", clean(rows[row]), clean(columns[column]), shown(weights[row][column]));
  }
  const [name, values, others] = row !== null ? [rows[row], weights[row], columns] : [columns[column], weights.map((each) => each[column]), rows];
  const largest = values.map((value, i) => [value, i]).sort(([a], [b]) => Math.abs(b) - Math.abs(a)).slice(0, 4).filter(([value]) => Number(value.toFixed(isZeroing() ? 3 : 2)));
  return label(row !== null ? "attributionOfRow" : "attributionOfColumn", clean(name), largest.map(([value, i]) => `${clean(others[i])} ${shown(value)}`).join(", "));
}
