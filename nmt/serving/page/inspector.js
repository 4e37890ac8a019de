// What is selected in the map, and what can be done with it: change weights, take another piece, see the numbers.

import { button, clean, element, fillTable, make } from "/page/element.js";
import { equation } from "/page/equation.js";
import { reweighted } from "/page/maps.js";
import { ask } from "/page/server.js";
import { MEAN, state } from "/page/state.js";
import { label } from "/page/text.js";

const range = ([from, to]) => Array.from({ length: to - from }, (_, i) => from + i);
const spoken = (map, row, column) => `${clean(map.rows[row])} → ${clean(map.columns[column])}`;

const where = () => ({
  site: state.site, layer: state.layer === MEAN ? null : state.layer, head: state.head === MEAN ? null : state.head,
});

// The text of a change in the language of the page: what it says, and the site, layer and head.
function textOf({ says: [name, ...values], changes: [{ site, layer, head }] }) {
  const named = (what, index) => index === null ? "" : `${label(what)} ${index}`;
  return `${label(name, ...values)} · ${[site, named("layer", layer), named("head", head)].filter(Boolean).join(", ")}`;
}

// Adds a change, or replaces the one of the same kind and place; no changes remove it.
function change(kind, says, changes, refresh) {
  const key = keyOf(kind, changes[0] ?? where());
  const old = state.changes.findIndex((each) => each.key === key);
  const made = { key, says, changes };
  if (old >= 0) state.changes.splice(old, 1, made);
  else state.changes.push(made);
  refresh();
}

const keyOf = (kind, { site, layer, head }) => [kind, site, layer, head].join(" ");

// Gives a cell the weight; the others of its row share the rest in proportion. A word's row is that of all its pieces.
export function setWeight(map, row, column, weight, refresh) {
  const columns = range(map.columnSpans[column]);
  const changes = range(map.rowSpans[row]).map((step) => ({
    ...where(), way: "weights", weights: reweighted(map.pieceRow(step), columns, weight).map((each) => Number(each.toFixed(6))), steps: [step],
  }));
  change(`row ${row}`, ["isWeight", spoken(map, row, column), weight.toFixed(2)], changes, refresh);
}

const layerKey = (what) => keyOf(what, { ...where(), head: null });

// What was chosen for all heads of the selected layers: a temperature, a normalizer or the half width of the window.
export const chosenForLayer = (what) => state.changes.find(({ key }) => key === layerKey(what))?.changes[0][what];

// Chooses it; null is as trained.
export function chooseForLayer(what, value, refresh) {
  state.changes = state.changes.filter(({ key }) => key !== layerKey(what));
  if (value === null) refresh();
  else change(what, ["isSetting", what, value], [{ ...where(), head: null, [what]: value }], refresh);
}

// `map` is the selected one, `intact` the translation that it is of, `base` its weights with the changes so far.
export function drawInspector({ map, base, intact, refresh, report }) {
  const within = (index, names) => map && index !== null && index < names.length ? index : null;
  const row = within(state.row, map?.rows), column = within(state.column, map?.columns);
  const steps = row === null ? null : range(map.rowSpans[row]), columns = column === null ? [] : range(map.columnSpans[column]);
  const isCell = row !== null && column !== null;
  element.selection.textContent = describe(map, row, column);
  element["weight-box"].hidden = !isCell;
  if (isCell) {
    const weight = Math.min((base ?? map).weights[row][column], 1);
    element.weight.value = weight;
    element["weight-value"].textContent = weight.toFixed(2);
  }
  const act = (name, changed, says) => button(label(name), () => change(`${name} ${row} ${column}`, says, [{ ...where(), ...changed }], refresh));
  const actions = [];
  if (isCell) {
    actions.push(
      act("blockCell", { way: "scale", columns, factor: 0, steps }, ["isWeight", spoken(map, row, column), 0]),
      act("boost", { way: "scale", columns, factor: 3, steps }, ["isTimes", spoken(map, row, column), 3]),
      button(label("oneHot"), () => setWeight(base ?? map, row, column, 1, refresh)),
    );
  }
  if (row !== null) {
    actions.push(
      act("uniform", { way: "uniform", steps }, ["isUniform", clean(map.rows[row])]),
      act("shuffle", { way: "shuffled", steps }, ["isShuffled", clean(map.rows[row])]),
    );
    if (state.site !== "encoder_self" && steps[0] > 0) {
      actions.push(button(label("lock"), () => { state.prefix = intact.ids.slice(0, steps[0]); refresh(); }));
    }
  }
  if (column !== null) {
    actions.push(act("blockWord", { way: "scale", columns, factor: 0 }, ["isBlocked", clean(map.columns[column])]));
  }
  if (map && state.head !== MEAN) actions.push(act("off", { way: "off" }, ["off"]));
  element.actions.replaceChildren(...actions);

  const items = state.changes.map((each, i) => [textOf(each), () => { state.changes.splice(i, 1); refresh(); }]);
  if (state.prefix.length) {
    const kept = intact ? intact.pieces.slice(0, state.prefix.length).join("").replaceAll("\u2581", " ").trim() : "";
    items.push([label("locked", kept), () => { state.prefix = []; refresh(); }]);
  }
  element["changes-box"].hidden = items.length === 0;
  element.changes.replaceChildren(...items.map(([text, drop]) => {
    const remove = button("×", drop);
    remove.setAttribute("aria-label", `${label("remove")}: ${text}`);
    return make("li", {}, text, remove);
  }));
  drawAlternatives(steps, intact, refresh, report);
  drawExplanation(steps, intact, report);
}

function describe(map, row, column) {
  if (!map) return "";
  if (row !== null && column !== null) return label("weight", clean(map.rows[row]), clean(map.columns[column]), map.weights[row][column].toFixed(3));
  if (row !== null) {
    const strongest = map.weights[row].map((weight, i) => [weight, i]).sort(([a], [b]) => b - a).slice(0, 4)
      .filter(([weight]) => weight >= 0.01).map(([weight, i]) => `${clean(map.columns[i])} ${weight.toFixed(2)}`);
    return label("row", clean(map.rows[row]), strongest.join(", "));
  }
  return column === null ? label("hint") : label("column", clean(map.columns[column]));
}

async function drawAlternatives(steps, intact, refresh, report) {
  const wanted = steps !== null && state.site !== "encoder_self";
  element["alternatives-box"].hidden = !wanted;
  if (!wanted) return;
  try {
    const { alternatives } = await ask("/v1/alternatives", { run: state.run, text: state.text, target_ids: intact.ids, number: 6 });
    element.alternatives.replaceChildren(...alternatives[steps[0]].map(({ piece, id, log_prob }) => {
      const taken = button(`${piece.replaceAll("\u2581", "␣")} ${(100 * Math.exp(log_prob)).toFixed(1)} %`, () => {
        state.prefix = [...intact.ids.slice(0, steps[0]), id];
        refresh();
      });
      taken.disabled = id < 4 || intact.ids[steps[0]] === id;
      taken.title = label("taken");
      return taken;
    }));
  } catch (error) { report(error); }
}

async function drawExplanation(steps, intact, report) {
  const one = state.layer !== MEAN && state.head !== MEAN;
  element.explanation.hidden = steps === null || !one;
  if (element.explanation.hidden || !element.explanation.open) return;
  try {
    const cell = await ask("/v1/explain", {
      run: state.run, text: state.text, target_ids: intact.ids, site: state.site, layer: state.layer, head: state.head, row: steps[0],
    });
    const numbers = (vector) => `[${vector.slice(0, 4).map((x) => x.toFixed(2)).join(", ")}${vector.length > 4 ? ", …" : ""}]`;
    element.equation.replaceChildren(
      equation(cell), make("p", {}, label("query", numbers(cell.query))), make("p", {}, label("context", numbers(cell.context))),
    );
    const heads = ["", label("key"), label("score"), label("allowed"), ...cell.log_prior ? ["log g"] : [], label("weights"), label("value")];
    fillTable(element.numbers, [heads, ...cell.columns.map((piece, i) => [
      piece, numbers(cell.keys[i]), cell.scores[i].toFixed(3), label(cell.allowed[i] ? "yes" : "no"),
      ...cell.log_prior ? [cell.log_prior[i].toFixed(3)] : [], cell.weights[i].toFixed(4), numbers(cell.values[i]),
    ])]);
  } catch (error) { report(error); }
}
