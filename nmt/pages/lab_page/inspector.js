// The selection in a map, and the actions on it: change weights, take another piece, see the numbers.

import { button, clean, element, fillTable, make } from "/page/element.js";
import { equations, numbers, written } from "/page/equation.js";
import { reweighted } from "/page/maps.js";
import { ask } from "/page/server.js";
import { MEAN, state } from "/page/state.js";
import { label } from "/page/text.js";

const range = ([from, to]) => Array.from({ length: to - from }, (_, i) => from + i);
const spoken = (map, row, column) => `${clean(map.rows[row])} → ${clean(map.columns[column])}`;

const where = () => ({
  site: state.site, layer: state.layer === MEAN ? null : state.layer, head: state.head === MEAN ? null : state.head,
});

// The name of a change's site, layer and head in the language of the page.
export function placeName({ site, layer, head } = where()) {
  const heads = head === null ? (layer === null ? "" : label("everyHead")) : `${label("head")} ${head}`;
  const layers = layer === null ? (head === null ? label("allHeads") : "") : `${label("layer")} ${layer}`;
  return [label(site), layers, heads].filter(Boolean).join(", ");
}

const textOf = ({ says: [name, ...values], place }) => `${label(name, ...values)} · ${placeName(place)}`;
const keyOf = (kind, { site, layer, head }) => [kind, site, layer, head].join(" ");

// Adds a change, replacing one of the same kind at the same place. New weights for a row also replace changes to its
// cells.
function change(kind, says, changes, refresh, place = where()) {
  const key = keyOf(kind, place), cells = `${kind.replace("row", "cell")} `;
  const isReplaced = (old) => old === key || (kind.startsWith("row") && old.startsWith(cells) && old.endsWith(keyOf("", place)));
  state.changes = [...state.changes.filter((each) => !isReplaced(each.key)), { key, says, place, changes }];
  refresh();
}

// Gives a cell this weight in each selected layer and head; the other cells of its row share the rest in proportion to
// their weights. `map` already includes all changes so far, so this becomes the row's only change. A word stands for all
// its pieces.
export function setWeight(map, row, column, weight, refresh) {
  const columns = range(map.columnSpans[column]);
  const changes = range(map.rowSpans[row]).flatMap((step) => map.rowsOf(step).map(({ layer, head, weights }) => ({
    site: state.site, layer, head, steps: [step], way: "weights",
    weights: reweighted(weights, columns, weight).map((each) => Number(each.toFixed(6))),
  })));
  change(`row ${map.rowSpans[row].join("-")}`, ["isWeight", spoken(map, row, column), weight.toFixed(2)], changes, refresh);
}

const layerKey = (what) => keyOf(what, { ...where(), head: null });

// The value chosen for all heads of the selected layers: a temperature, a normalizer or the half width of the window.
export const chosenForLayer = (what) => state.changes.find(({ key }) => key === layerKey(what))?.changes[0][what];

// Sets that value; null restores the trained one.
export function chooseForLayer(what, value, refresh) {
  state.changes = state.changes.filter(({ key }) => key !== layerKey(what));
  if (value === null) refresh();
  else change(what, ["isSetting", label(what), value], [{ ...where(), head: null, [what]: value }], refresh, { ...where(), head: null });
}

// `map` is the map that contains the selection, and `name` is the name of its section. If there are changes, `changed`
// contains the same rows after them. `intact` is the run's own translation.
export function drawInspector({ map, name, changed, intact, refresh, report }) {
  const focused = element.inspector.contains(document.activeElement);
  const within = (index, names) => map && index !== null && index < names.length ? index : null;
  const row = within(state.row, map?.rows), column = within(state.column, map?.columns);
  const own = name === "intact", isCell = row !== null && column !== null;
  const free = own && isCell && !map.isBlocked(row, column);
  const steps = row === null ? null : range(map.rowSpans[row]), columns = column === null ? [] : range(map.columnSpans[column]);
  element.selection.textContent = describe(map, row, column, own ? changed : null);
  element["weight-box"].hidden = !free;
  if (free) {
    const weight = Math.min((changed ?? map).weights[row][column], 1);
    element.weight.value = weight;
    element["weight-value"].textContent = weight.toFixed(2);
  }
  const [rowKey, columnKey] = [map?.rowSpans[row], map?.columnSpans[column]].map((span) => span?.join("-"));
  const act = (what, kind, says, changes, text = label(what)) =>
    button(text, () => change(kind, says, [{ ...where(), ...changes }], refresh));
  const actions = [];
  if (free) {
    const cell = spoken(map, row, column);
    actions.push(
      act("blockCell", `cell ${rowKey} ${columnKey}`, ["isWeight", cell, 0], { way: "scale", columns, factor: 0, steps }),
      act("boost", `cell ${rowKey} ${columnKey}`, ["isTimes", cell, 3], { way: "scale", columns, factor: 3, steps }),
      button(label("oneHot"), () => setWeight(changed ?? map, row, column, 1, refresh)),
    );
  }
  if (own && row !== null) {
    actions.push(
      act("uniform", `row ${rowKey}`, ["isUniform", clean(map.rows[row])], { way: "uniform", steps }),
      act("shuffle", `row ${rowKey}`, ["isShuffled", clean(map.rows[row])], { way: "shuffled", steps }),
    );
    if (state.site !== "encoder_self" && steps[0] > 0) {
      actions.push(button(label("lock"), () => { state.prefix = intact.ids.slice(0, steps[0]); refresh(); }));
    }
  }
  if (own && column !== null) {
    const text = `${label("blockWord")} (${placeName()})`;
    actions.push(act("blockWord", `column ${columnKey}`, ["isBlocked", clean(map.columns[column])], { way: "scale", columns, factor: 0 }, text));
  }
  if (map && own) actions.push(act("off", "off", ["isOff"], { way: "off" }, `${label("off")} (${placeName()})`));
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
  }), ...items.length > 1 ? [make("li", { class: "all" }, button(label("removeAll"), () => { Object.assign(state, { changes: [], prefix: [] }); refresh(); }))] : []);
  for (const note of document.querySelectorAll(".unchanged")) note.hidden = state.changes.length === 0;
  // The button that was pressed is gone, so move the focus to the map, where the arrow keys work.
  if (focused && document.activeElement === document.body) element.intact.querySelector(".map svg")?.focus({ preventScroll: true });
  drawAlternatives(own ? steps : null, intact, refresh, report);
  drawExplanation(own ? steps : null, columns[0], intact, report);
}

function describe(map, row, column, changed) {
  if (!map) return "";
  const predicts = state.site !== "encoder_self";
  if (row !== null && column !== null) {
    if (map.isBlocked(row, column)) return label("blocked", clean(map.rows[row]), clean(map.columns[column]));
    const weight = label(predicts ? "weightPredicting" : "weight", clean(map.rows[row]), clean(map.columns[column]), map.weights[row][column].toFixed(3));
    return changed ? `${weight} ${label("now", changed.weights[row][column].toFixed(3))}` : weight;
  }
  if (row !== null) {
    const strongest = map.weights[row].map((weight, i) => [weight, i]).sort(([a], [b]) => b - a).slice(0, 4)
      .filter(([weight]) => weight >= 0.01).map(([weight, i]) => `${clean(map.columns[i])} ${weight.toFixed(2)}`);
    return label(predicts ? "rowPredicting" : "row", clean(map.rows[row]), strongest.join(", "));
  }
  return column === null ? label("hint") : label("column", clean(map.columns[column]));
}

const alternativesOf = new WeakMap();

async function drawAlternatives(steps, intact, refresh, report) {
  const wanted = steps !== null && state.site !== "encoder_self";
  element["alternatives-box"].hidden = !wanted;
  if (!wanted) return;
  try {
    // One answer covers all positions.
    if (!alternativesOf.has(intact)) {
      alternativesOf.set(intact, await ask("/v1/alternatives", { run: state.run, text: state.text, target_ids: intact.ids, number: 6 }));
    }
    const { alternatives } = alternativesOf.get(intact);
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

// Explains the row of the first selected piece, and works out the score of the selected column (by default, the column
// with the largest weight).
async function drawExplanation(steps, column, intact, report) {
  const one = state.layer !== MEAN && state.head !== MEAN;
  element.explanation.hidden = steps === null || !one;
  if (element.explanation.hidden || !element.explanation.open) return;
  try {
    const cell = await ask("/v1/explain", {
      run: state.run, text: state.text, target_ids: intact.ids, site: state.site, layer: state.layer, head: state.head, row: steps[0],
    });
    const shown = column ?? cell.weights.indexOf(Math.max(...cell.weights));
    element.equation.replaceChildren(
      ...equations(cell, shown), make("p", {}, label("query", numbers(cell.query))), make("p", {}, label("context", numbers(cell.context))),
    );
    const heads = ["", label("weights"), label("score"), label("allowed"), ...cell.log_prior ? ["log g"] : [], label("key"), label("value")];
    fillTable(element.numbers, [heads, ...cell.columns.map((piece, i) => [
      piece, cell.weights[i].toFixed(4), written(cell.scores[i], 3), label(cell.allowed[i] ? "yes" : "no"),
      ...cell.log_prior ? [written(cell.log_prior[i], 3)] : [], numbers(cell.keys[i]), numbers(cell.values[i]),
    ])]);
    element.numbers.rows[shown + 1].classList.add("shown");
  } catch (error) { report(error); }
}
