// @ts-check
// What the viewer shows, and how the address keeps it.

import { readAnchor, writeAnchor } from "../address.js";
import { element } from "../dom.js";
import { otherLanguage } from "../language.js";
import { MEAN } from "../map.js";
import { keyOf, pairs, runs } from "./data.js";

/** @typedef {import("../map.js").Choice} Choice */
/** @typedef {"source" | "target"} Side */
/** @typedef {{ side: Side, index: number, column?: number }} Place a word; in the heat map it may also have a column */
/** @typedef {{ run: number, layer: Choice, head: Choice }} Wish a run may have fewer layers or heads than are wished for */

export const view = {
  pair: 0, site: "cross", unit: /** @type {import("../words.js").Unit} */ ("pieces"), rows: "predicts", compare: false,
  // A hovered or focused place overrides the pinned one.
  pinned: /** @type {Place | null} */ (null), hovered: /** @type {Place | null} */ (null),
  // What the two panels show.
  wishes: /** @type {[Wish, Wish]} */ ([{ run: 0, layer: MEAN, head: MEAN }, { run: 0, layer: MEAN, head: MEAN }]),
};

export const activePlace = () => view.hovered ?? view.pinned;

/** @param {Place | null} one @param {Place | null} other */
export const samePlace = (one, other) => one?.side === other?.side && one?.index === other?.index && one?.column === other?.column;

export function unpin() {
  view.pinned = view.hovered = null;
}

/** Opens the second panel with another run, or with another head if there is only one run. */
export function openSecond() {
  const [{ run, layer, head }, second] = view.wishes;
  view.compare = true;
  Object.assign(second, { run, layer, head });
  if (runs.length > 1) second.run = run === runs.length - 1 ? 0 : runs.length - 1;
  else second.head = head === MEAN ? 0 : MEAN;
}

export function writeView() {
  const { line, rank } = pairs[view.pair], [first, second] = view.wishes, { pinned } = view;
  const anchor = new URLSearchParams(Object.entries({
    sentence: line, ...rank > 1 ? { rank } : {}, site: view.site, layer: first.layer, head: first.head,
    ...runs.length > 1 ? { run: first.run + 1 } : {},
    ...view.unit !== "pieces" ? { unit: view.unit } : {},
    ...view.rows !== "predicts" ? { rows: view.rows } : {},
    ...pinned ? { [pinned.side === "target" ? "word" : "source"]: pinned.index + 1 } : {},
    ...view.compare ? { compare: [second.run + 1, second.layer, second.head].join(".") } : {},
  }).map(([name, value]) => [name, String(value)]));
  writeAnchor(anchor);
  element.language.href = `?lang=${otherLanguage}#${anchor}`;
}

/** Takes the view from the address. A value that is not a number or is out of range is ignored. */
export function readView() {
  const anchor = readAnchor();
  const number = (/** @type {string | null | undefined} */ text, least = 0, most = Infinity) =>
    /^\d+$/.test(text ?? "") && Number(text) >= least && Number(text) <= most ? Number(text) : null;
  const choice = (/** @type {string | null} */ text) => text === MEAN ? MEAN : number(text);
  const set = (/** @type {Wish} */ wish, /** @type {(string | null)[]} */ [run, layer, head]) => Object.assign(wish, {
    run: (number(run, 1, runs.length) ?? wish.run + 1) - 1, layer: choice(layer) ?? wish.layer, head: choice(head) ?? wish.head,
  });
  const key = `${anchor.get("sentence")}.${anchor.get("rank") ?? 1}`, compared = anchor.get("compare");
  view.pair = Math.max(pairs.findIndex((pair) => keyOf(pair) === key), 0);
  view.site = anchor.get("site") ?? view.site;
  view.unit = anchor.get("unit") === "words" ? "words" : "pieces";
  view.rows = anchor.get("rows") === "reads" ? "reads" : "predicts";
  set(view.wishes[0], [anchor.get("run"), anchor.get("layer"), anchor.get("head")]);
  view.compare = compared !== null;
  if (compared !== null) set(view.wishes[1], compared.split("."));
  const index = (number(anchor.get("word") ?? anchor.get("source")) ?? 0) - 1;
  view.pinned = index >= 0 ? { side: anchor.has("word") ? "target" : "source", index } : null;
}
