// What each piece of the run's own translation depends on, beside what the model attends to.

import { clean, element, signed } from "/page/element.js";
import { drawHeat } from "/page/heat.js";
import { ask, isOutdated, sentenceOf } from "/page/server.js";
import { state, writeAddress } from "/page/state.js";
import { label } from "/page/text.js";

const METHODS = [...element.method.options].map(({ value }) => value);
const verdict = element.attributed.querySelector(".verdict"), place = element.attributed.querySelector(".map");

// The translation, the answer to the question `asked` about it, and what is selected in its map.
let translation = null, found = null, asked = "", selection = null;

const isZeroing = () => state.method === "value_zeroing";

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
    if (target.open !== (state.method !== "")) choose(target.open ? element.method.value : "", state.contrast);
  });
  element.method.addEventListener("change", ({ target }) => choose(target.value, state.contrast));
  element.contrast.addEventListener("change", ({ target }) => choose(state.method, target.value.trim()));
}

// `intact` is the run's own translation, or null. It is asked about only if the box is open.
export async function showAttribution(intact) {
  translation = intact;
  element["attribution-box"].hidden = !intact;
  if (!intact || !state.method) return;
  element["contrast-box"].hidden = isZeroing();
  element["attribution-hint"].textContent = label(isZeroing() ? "attributionHintZeroing" : "attributionHint");
  element["attributed-name"].textContent = label("attributedName", state.run, label(state.method));
  const contrast = state.contrast && !isZeroing() ? { contrast: state.contrast } : {};
  const question = { run: state.run, text: state.text, target_ids: intact.ids, method: state.method, ...contrast };
  const key = JSON.stringify(question);
  if (key !== asked) {
    [found, asked, selection] = [null, key, null];
    place.replaceChildren();
    verdict.textContent = label("computing");
    let answer;
    try { answer = await ask("/v1/attribute", question); } catch (error) {
      if (isOutdated(error) || asked !== key) return;
      asked = "";
      verdict.textContent = sentenceOf(error);
      return;
    }
    if (asked !== key) return; // a later question has been asked
    found = answer;
  }
  drawAttribution();
}

export function drawAttribution() {
  if (!found || !state.method || !translation) return;
  const { outputs, columns, attribution: weights } = found;
  const map = { rows: outputs, columns, weights, names: [label("target"), label("source")], isBlocked: () => false };
  drawHeat(place, map, {
    most: Math.max(...weights.flat().map(Math.abs)), selection, name: element["attributed-name"].textContent, signed: !isZeroing(),
    choose: (chosen) => { selection = chosen; drawAttribution(); },
  });
  const note = state.changes.length ? [label("stale")] : [];
  verdict.textContent = [described(map), ...note].filter(Boolean).join(" ");
}

function described({ rows, columns, weights }) {
  if (!selection) return "";
  const { row, column } = selection, shown = (value) => isZeroing() ? value.toFixed(3) : signed(value);
  if (row !== null && column !== null) {
    return label(isZeroing() ? "attributionOfZeroing" : "attributionOf", clean(rows[row]), clean(columns[column]), shown(weights[row][column]));
  }
  const [name, values, others] = row !== null ? [rows[row], weights[row], columns] : [columns[column], weights.map((each) => each[column]), rows];
  const largest = values.map((value, i) => [value, i]).sort(([a], [b]) => b - a).slice(0, 4);
  return label(row !== null ? "attributionOfRow" : "attributionOfColumn", clean(name), largest.map(([value, i]) => `${clean(others[i])} ${shown(value)}`).join(", "));
}
