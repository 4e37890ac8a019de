// @ts-check
// One map of the viewer: the words with lines between them, the heat map, and the entropy of each head.

import { colorOf, css, inkOn, scale } from "../colors.js";
import { clamp, fillSelect, hit, listenToTable, make, part } from "../dom.js";
import { cellOf, curve, svg } from "../draw.js";
import { bareLayout, drawHeatMap } from "../heat_map.js";
import { decimal, fillTexts } from "../language.js";
import { MEAN, choiceOf, choicesOf, columnOf, indicesOf, mapOf, strongest } from "../map.js";
import { thumbnail } from "../thumbnail.js";
import { isSpecial, plainText, sameLabels, splitMark, withoutMark } from "../words.js";
import { STEPS, arrival, keyOf, kind, nameOf, pairs, runs, weightsOf } from "./data.js";
import { label } from "./texts.js";
import { activePlace, samePlace, view } from "./view.js";

/** @typedef {import("../map.js").AttentionMap} AttentionMap */
/** The selected map and those of all heads, by layer. @typedef {AttentionMap & { every: AttentionMap[][] }} SelectedMap */
/** @typedef {import("./view.js").Place} Place */
/** @typedef {import("./view.js").Side} Side */

/** @type {Side[]} */
const SIDES = ["source", "target"];

/** @param {AttentionMap} map @param {Side} side */
export const labelsOf = (map, side) => side === "source" ? map.columns : map.rows;

/** @param {Place} place */
const weightsFrom = ({ side, index }, /** @type {AttentionMap} */ map) => side === "target" ? map.weights[index] : columnOf(map, index);

/** The place of a cell in a heat map. @param {import("../draw.js").Cell | null} cell @returns {Place | null} */
const placeOf = (cell) => !cell ? null : cell.row === null ? { side: "source", index: /** @type {number} */ (cell.column) }
  : { side: "target", index: cell.row, ...cell.column === null ? {} : { column: cell.column } };

export class Panel {
  /**
   * @param {number} number 0 or 1
   * @param {{ refresh: () => void, redraw: () => void }} page `refresh` shows another choice, `redraw` another active word
   */
  constructor(number, page) {
    this.page = page;
    this.wish = view.wishes[number];
    const template = /** @type {HTMLTemplateElement} */ (part(document, "template#panel"));
    this.root = /** @type {HTMLElement} */ (/** @type {Element} */ (template.content.firstElementChild).cloneNode(true));
    this.root.setAttribute("aria-label", label(number ? "secondMap" : "map"));
    fillTexts(label, this.root);
    /** The parts of the panel, named in the template. @type {Record<string, import("../dom.js").PageElement>} */
    this.parts = {};
    for (const element of /** @type {NodeListOf<import("../dom.js").PageElement>} */ (this.root.querySelectorAll("[data-part]"))) {
      this.parts[element.dataset.part ?? ""] = element;
      element.id = element.dataset.part + (number ? "-2" : "");
    }
    this.lists = { source: part(this.root, ".tokens[data-side=source]"), target: part(this.root, ".tokens[data-side=target]") };
    /** @type {Record<Side, HTMLElement[]>} */
    this.tokens = { source: [], target: [] };
    this.faint = part(this.root, ".faint");
    this.bold = part(this.root, ".bold");
    // Where the lines begin and end.
    this.gap = 0;
    /** @type {Record<Side, number[]>} */
    this.heights = { source: [], target: [] };
    /** @type {AttentionMap | null} */
    this.map = null;
    this.most = 1; // the weight with the strongest color
    /** The heat map, and what it was drawn for. @type {{ drawing: import("../heat_map.js").Drawing, shape: string } | null} */
    this.heat = null;
    this.listen();
  }

  get index() { return runs[this.wish.run].sentences.findIndex((sentence) => keyOf(sentence) === keyOf(pairs[view.pair])); }
  get sentence() { return runs[this.wish.run].sentences[this.index]; }
  get site() { return this.sentence?.sites?.[view.site]; }
  get layer() { return this.shown("layer"); }
  get head() { return this.shown("head"); }

  /** The choice as far as this run has it. The wish is kept for runs that have more. @param {"layer" | "head"} name */
  shown(name) {
    const wish = this.wish[name], count = this.site?.[`${name}s`] ?? 1;
    return count === 1 ? 0 : wish === MEAN ? MEAN : clamp(wish, count - 1);
  }

  listen() {
    const { parts, page, wish } = this;
    parts.run.addEventListener("change", () => { wish.run = Number(parts.run.value); page.refresh(); });
    for (const name of /** @type {const} */ (["layer", "head"])) {
      parts[name].addEventListener("change", () => { wish[name] = choiceOf(parts[name].value); page.refresh(); });
    }
    for (const side of SIDES) {
      const on = (/** @type {keyof HTMLElementEventMap} */ name, /** @type {(place: Place, event: any) => void} */ act) => this.lists[side].addEventListener(name, (event) => {
        const token = hit(event, ".token");
        if (token) act({ side, index: Number(token.dataset.index) }, event);
      });
      // A finger does not hover; its tap is a click.
      on("pointerover", (place, { pointerType }) => { if (pointerType !== "touch") this.hover(place); });
      this.lists[side].addEventListener("pointerleave", ({ pointerType }) => { if (pointerType !== "touch") this.hover(null); });
      on("focusin", (place) => this.hover(place));
      on("focusout", () => this.hover(null));
      on("click", (place) => this.pin(place));
      on("keydown", (place, { key }) => { if (key === "Enter") this.pin(place); });
    }
    parts.heat.addEventListener("pointermove", (event) => { if (event.pointerType !== "touch") this.hover(placeOf(cellOf(event))); });
    parts.heat.addEventListener("pointerleave", () => this.hover(null));
    parts.heat.addEventListener("click", (event) => {
      const place = placeOf(cellOf(event));
      if (place) this.pin(place);
    });
    parts.entropy.addEventListener("click", (event) => {
      const { layer, head } = hit(event, "button")?.dataset ?? {};
      if (layer === undefined) return;
      Object.assign(wish, { layer: Number(layer), head: Number(head) });
      page.refresh();
    });
    listenToTable(parts.entropy);
    new ResizeObserver(() => this.drawMap()).observe(parts.views);
  }

  /** @param {Place | null} place */
  hover(place) {
    if (samePlace(place, view.hovered)) return;
    view.hovered = place;
    this.page.redraw();
  }

  /** @param {Place} place */
  pin(place) {
    view.pinned = samePlace(place, view.pinned) ? null : place;
    if (!view.pinned) view.hovered = null;
    this.page.redraw();
  }

  /** Waits for the maps of the selected sentence. */
  arrival() { return arrival(this.wish.run, this.index); }

  /** Unpacks the weights of the selected map; null if there is none. @returns {Promise<SelectedMap | null>} */
  async load() {
    const { parts, site, sentence, layer, head } = this;
    fillSelect(parts.run, runs.map((_, i) => [i, nameOf(i)]), this.wish.run);
    parts["run-label"].hidden = runs.length < 2;
    parts["run-kind"].textContent = label(kind);
    fillSelect(parts.layer, choicesOf(site?.layers ?? 1).map((choice) => [choice, label(String(choice))]), layer);
    fillSelect(parts.head, choicesOf(site?.heads ?? 1).map((choice) => [choice, label(String(choice))]), head);
    parts.views.hidden = !site;
    parts.missing.hidden = Boolean(site);
    if (!site) {
      parts.pair.replaceChildren();
      parts.missing.textContent = sentence
        ? label(`noSiteOf${kind}`, label(view.site))
        : label(`noLineOf${kind}`, pairs[view.pair].line, pairs[view.pair].rank);
      return null;
    }
    const { unit } = view, rows = sentence.sequences[view.rows === "reads" ? site.inputs : site.outputs], columns = sentence.sequences[site.columns];
    const bytes = await weightsOf(this.wish.run, this.index, view.site);
    const layers = indicesOf(layer, site.layers), heads = indicesOf(head, site.heads);
    const start = (/** @type {number} */ l, /** @type {number} */ h) => (l * site.heads + h) * rows.length * columns.length;
    const mapAt = (/** @type {number[]} */ ofLayers, /** @type {number[]} */ ofHeads) => mapOf((l, h, row, column) => bytes[start(l, h) + row * columns.length + column] / STEPS, ofLayers, ofHeads, rows, columns, unit);
    const map = mapAt(layers, heads), every = indicesOf(MEAN, site.layers).map((l) => indicesOf(MEAN, site.heads).map((h) => mapAt([l], [h])));
    // Centers are positions of pieces, and their mean over heads is meaningless.
    const isOne = layers.length === 1 && heads.length === 1 && unit === "pieces";
    return { ...map, every, centers: isOne && site.center ? site.center[layers[0]][heads[0]] : null };
  }

  /** Draws a loaded map. @param {SelectedMap} map @param {number} most the weight with the strongest color */
  draw(map, most) {
    [this.map, this.most] = [map, most];
    this.drawNames(map);
    this.drawTokens("source", map.columns);
    this.drawTokens("target", map.rows);
    this.parts.lines.classList.toggle("dense", Math.max(map.columns.length, map.rows.length) > 34);
    this.drawEntropy(map.every);
    this.drawMap();
    this.drawActive();
  }

  /** @param {AttentionMap} map */
  drawNames(map) {
    const { parts, site, sentence } = this;
    const target = `target${view.rows}`;
    const [source, rows] = ({
      encoder_self: ["attendedSource", "source"], decoder_self: ["attendedTarget", target], cross: ["source", target],
    }[view.site] ?? ["columns", "rows"]).map((name) => label(name));
    parts["source-name"].textContent = source;
    parts["target-name"].textContent = rows;
    this.lists.source.setAttribute("aria-label", source);
    this.lists.target.setAttribute("aria-label", rows);
    const ends = [site.columns, site.outputs].map((number) => plainText(sentence.sequences[number]));
    parts.pair.replaceChildren(...[...new Set(ends)].map((text) => make("span", {}, text)));
    if (sentence.score !== null) parts.pair.append(make("span", { class: "score" }, decimal(sentence.score, 2)));
    parts.heat.setAttribute("aria-label", label(
      "ofMap", nameOf(this.wish.run), pairs[view.pair].line, label(view.site), label(String(this.layer)), label(String(this.head)),
      map.rows.length, map.columns.length, label(view.unit),
    ));
    parts.centers.hidden = !map.centers;
    // The weight of a word sums the rounded weights of its pieces, so its error can be larger.
    parts.most.textContent = view.unit === "pieces" ? label("each", decimal(this.most, 2)) : decimal(this.most, 2);
    parts.ramp.style.background = `linear-gradient(to right, ${scale().join(", ")})`;
  }

  /** Keeps the elements if only the weights have changed, so that focus and hover are not lost. @param {Side} side @param {string[]} texts */
  drawTokens(side, texts) {
    if (sameLabels(texts, this.tokens[side].map(({ dataset }) => dataset.text ?? ""))) return;
    this.tokens[side] = texts.map((text, index) => {
      const [mark, rest] = splitMark(text);
      return make("div", {
        class: isSpecial(text) ? "token special" : "token", "data-side": side, "data-index": index, "data-text": text, title: text,
        role: "option", "aria-selected": false, tabindex: -1,
      }, ...mark ? [make("span", { class: "mark" }, mark)] : [], rest);
    });
    this.lists[side].replaceChildren(...this.tokens[side]);
  }

  /** @param {number} row @param {number} column */
  line(row, column) {
    return curve(this.gap, this.heights.target[row], 0, this.heights.source[column]);
  }

  /** Draws the heat map, and all lines: one path for each degree of strength, because thousands of paths would be slow. */
  drawMap() {
    const { map, most, parts } = this;
    if (!map) return;
    // Another head, or another frame of a film, has new colors in the same cells; drawing the cells again takes twice as long.
    const layout = bareLayout(parts.heat, map), shape = JSON.stringify([layout, map.rows, map.columns, map.centers]);
    if (this.heat?.shape === shape) this.heat.drawing.repaint(map.weights, most);
    else this.heat = { drawing: drawHeatMap(parts.heat, map, layout, { most, selection: this.cell }), shape };
    this.gap = part(parts.lines, "svg").clientWidth;
    for (const side of SIDES) {
      this.heights[side] = this.tokens[side].map((token) => token.offsetTop + token.offsetHeight / 2 - this.lists.source.offsetTop);
    }
    const degrees = Array.from({ length: 12 }, () => /** @type {string[]} */ ([]));
    map.weights.forEach((weights, row) => weights.forEach((weight, column) => {
      // The rounded weights of a word's pieces can sum to more than the largest weight.
      const degree = Math.round(Math.min(weight / most, 1) * degrees.length);
      if (degree > 0) degrees[degree - 1].push(this.line(row, column));
    }));
    this.faint.replaceChildren(...degrees.flatMap((curves, i) => {
      const share = (i + 1) / degrees.length;
      const look = { "stroke-opacity": (0.08 + 0.42 * share).toFixed(2), "stroke-width": (0.6 + 1.6 * share).toFixed(2) };
      return curves.length ? [svg("path", { d: curves.join(""), ...look })] : [];
    }));
  }

  /** The active place, or null if it is outside this map: the other panel's sentence may be longer. */
  get active() {
    const place = activePlace();
    return place && this.map && place.index < labelsOf(this.map, place.side).length ? place : null;
  }

  /** The active place as a cell of the heat map. */
  get cell() {
    const { active } = this;
    return !active ? null : active.side === "source" ? { row: null, column: active.index } : { row: active.index, column: active.column ?? null };
  }

  /** Marks the active word and the words on the other side by their weights. */
  drawActive() {
    const { active, map, most } = this;
    if (!map) return;
    const weights = active ? weightsFrom(active, map) : [];
    for (const side of SIDES) this.tint(side, active && active.side !== side ? weights : [], active);
    this.parts.lines.classList.toggle("busy", Boolean(active));
    this.bold.replaceChildren(...weights.flatMap((weight, i) => {
      const share = weight / most;
      if (!active || !(share > 0.01)) return [];
      const d = active.side === "target" ? this.line(active.index, i) : this.line(i, active.index);
      return [svg("path", { d, "stroke-opacity": (0.2 + 0.8 * share).toFixed(2), "stroke-width": (0.5 + 5 * share).toFixed(2) })];
    }));
    this.heat?.drawing.select(this.cell);
  }

  /** @param {Side} side @param {number[]} weights @param {Place | null} active */
  tint(side, weights, active) {
    const strongestHere = Math.max(...weights, 0), tokens = this.tokens[side];
    const chosen = active?.side === side ? active.index : -1;
    const stop = chosen >= 0 ? chosen : Math.max(tokens.findIndex((token) => token.tabIndex === 0), 0);
    tokens.forEach((token, i) => {
      const weight = weights[i] ?? 0;
      const isPinned = view.pinned?.side === side && view.pinned.index === i;
      token.classList.toggle("active", i === chosen || (active?.side !== side && active?.column === i));
      token.classList.toggle("pinned", isPinned);
      token.setAttribute("aria-selected", String(isPinned));
      // Weights within half a rounding step of the largest count as equal to it.
      token.classList.toggle("lit", weight > 0 && (weight >= 0.1 || weight >= strongestHere - 0.5 / STEPS));
      token.tabIndex = i === stop ? 0 : -1;
      if (weight > 0) token.dataset.weight = decimal(weight, 2);
      else delete token.dataset.weight;
      const color = weight > 0 ? colorOf(weight / this.most) : null;
      token.style.background = color ? css(color) : "";
      token.style.color = color ? inkOn(color) : "";
    });
  }

  /** A small map of each head on the color of its entropy. @param {AttentionMap[][]} every */
  drawEntropy(every) {
    const { site: { entropy, layers, heads }, parts } = this;
    const most = Math.max(...entropy.flat().map((value) => value ?? 0), 1e-9);
    const mostWeight = Math.max(...every.flat().map((map) => map.most)) || 1;
    const had = parts.entropy.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset : null;
    const cell = (/** @type {number} */ layer, /** @type {number} */ head) => {
      const value = entropy[layer][head], color = colorOf((value ?? 0) / most);
      const button = make("button", {
        "data-layer": layer, "data-head": head, "aria-pressed": this.layer === layer && this.head === head, tabindex: -1,
        "aria-label": label("ofHead", layer, head, value === null ? label("noWeights") : label("nats", decimal(value, 2))),
      }, thumbnail(every[layer][head].weights, mostWeight), make("span", {}, value === null ? "–" : decimal(value, 2)));
      Object.assign(button.style, { background: css(color), color: inkOn(color) });
      return make("td", {}, button);
    };
    const numbers = [...Array(heads).keys()];
    const top = make("tr", {}, make("td"), ...numbers.map((head) => make("th", { scope: "col" }, heads > 1 && head ? String(head) : label("headNumber", head))));
    const rows = [...Array(layers).keys()].map((layer) =>
      make("tr", {}, make("th", { scope: "row" }, label("layerNumber", layer)), ...numbers.map((head) => cell(layer, head))));
    parts.entropy.replaceChildren(make("thead", {}, top), make("tbody", {}, ...rows));
    const wanted = parts.entropy.querySelector(had ? `[data-layer="${had.layer}"][data-head="${had.head}"]` : '[aria-pressed="true"]');
    const stop = /** @type {HTMLElement} */ (wanted ?? parts.entropy.querySelector("button"));
    stop.tabIndex = 0;
    if (had) stop.focus();
  }

  /** What the active word attends to, or what attends to it, in words. */
  describe() {
    const said = this.map ? this.describeActive(this.map) : this.parts.missing.textContent;
    if (!said || !view.compare) return said;
    const run = view.wishes[0].run === view.wishes[1].run ? "" : `${nameOf(this.wish.run)}, `;
    return run + label("ofCell", label(String(this.layer)), label(String(this.head)), said);
  }

  /** @param {AttentionMap} map */
  describeActive(map) {
    const { active } = this;
    if (!active) return "";
    const { rows, columns, centers, weights } = map;
    const quoted = (/** @type {string} */ text) => `'${withoutMark(text)}'`;
    const list = (/** @type {string[]} */ labels) =>
      strongest(weightsFrom(active, map), labels, 5, 0.01).map(([text, weight]) => `${quoted(text)} ${decimal(weight, 2)}`).join(", ") || label("nothing");
    if (active.side === "source") return `${quoted(columns[active.index])} → ${list(rows)}`;
    const [start, end] = map.rowSpans[active.index];
    const isEncoder = view.site === "encoder_self", several = end - start > 1 ? "s" : "", verb = view.rows === "reads" && !isEncoder ? "Reads" : "";
    const who = label(`${isEncoder ? "atPosition" : "atStep"}${several}${verb}`, start + 1, end);
    const to = active.column === undefined || active.column >= columns.length
      ? list(columns) : `${quoted(columns[active.column])} ${decimal(weights[active.index][active.column], 3)}`;
    return `${who}: ${quoted(rows[active.index])} ← ${to}${centers ? label("window", decimal(centers[active.index], 2)) : ""}`;
  }
}
