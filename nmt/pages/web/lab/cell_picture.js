// @ts-check
// One cell of a map as a picture: vectors as strips of color, their products, scores and weights as bars, and the sum.
// A part of the picture and its symbol in the equations light up together; the numbers are written below.

import { colorOfDifference, css } from "../colors.js";
import { ARROWS, clamp, element, hasModifier, hit } from "../dom.js";
import { measured, picture, replace, short, svg } from "../draw.js";
import { label } from "../i18n.js";
import { SEPARATOR, decimal } from "../language.js";
import { withoutMark } from "../words.js";
import { picked, stepsOf } from "./cell_parts.js";
import { equations, factor, written } from "./equation.js";
import { quoted } from "./wording.js";

/** @typedef {import("../engine/interface.js").Cells} Cells */
/** @typedef {import("./cell_parts.js").Steps} Steps */
/** @typedef {{ symbol: string, name: string, part: string, width: number }} Column of the table of keys */

const STRIP = 13, HEAD = 17, SUM = 66, FONT = 11, LONG = 96, SHORT = 32, DIGITS = "₀₁₂₃₄₅₆₇₈₉";

const index = (/** @type {number} */ number) => [...String(number)].map((digit) => DIGITS[Number(digit)]).join("");
const exact = (/** @type {number} */ number) => Number(number.toPrecision(9));
const text = (/** @type {string} */ content, /** @type {number} */ x, /** @type {number} */ y, anchor = "start", kind = "") => svg("text", { x, y, "text-anchor": anchor, class: kind }, content);
const color = (/** @type {number} */ share) => css(colorOfDifference(share));
const furthest = (/** @type {number[]} */ values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;

/**
 * A vector as a strip of color.
 * @param {number[]} values @param {number[]} dims which of them are drawn @param {number} most the value with the last color
 * @param {{ x: number, y: number, width: number, height: number }} box @param {Record<string, string | number>} data
 */
function strip(values, dims, most, { x, y, width, height }, data) {
  const step = width / dims.length;
  return [
    svg("rect", { class: "frame", x: x - 0.5, y: y - 0.5, width: width + 1, height: height + 1 }),
    ...dims.map((m, at) => svg("rect", { x: x + at * step, y, width: step + 0.05, height, fill: color(values[m] / most), ...data, "data-dim": m, "data-value": exact(values[m]) })),
  ];
}

/**
 * The vectors of the shown key's score above each other, and their products, which sum to the score.
 * @param {SVGElement} root @param {Cells} cell @param {string} rowName @param {Steps} steps @param {number} left @param {number} width
 */
function drawProducts(root, cell, rowName, { strips, shown }, left, width) {
  if (!strips.length) {
    root.append(svg("g", { "data-symbol": "e" }, text(label("everyScoreIs0"), 0, STRIP)));
    return STRIP + 8;
  }
  const products = strips[strips.length - 1].values, dims = picked(products, LONG);
  strips.forEach(({ symbol, part, name, values }, line) => {
    const y = line * (STRIP + 4) + 2, isLast = part === "product";
    const caption = part === "k" ? `k: ${short(withoutMark(cell.columns[shown]), 8)}` : part === "q" ? `q: ${short(withoutMark(rowName), 8)}` : name;
    root.append(svg("g", { "data-symbol": symbol },
      text(caption, left - 5, y + 10, "end"), ...strip(values, dims, furthest(values), { x: left, y, width: width - left - SUM, height: STRIP }, { "data-part": part, "data-key": shown }),
      ...isLast ? [svg("text", { x: width, y: y + 10, "text-anchor": "end", class: "sum", "data-part": "e", "data-key": shown, "data-sum": "true", "data-value": exact(cell.scores[shown]) }, `∑ = ${written(cell.scores[shown], 3)}`)] : []));
  });
  return strips.length * (STRIP + 4) + 6;
}

/** The columns of the table of keys. @param {Cells} cell @param {Steps} steps @param {number} room @returns {Column[]} */
function columnsOf(cell, { prior }, room) {
  const isSparse = cell.normalizer === "Sparsemax", input = prior && cell.renormalized ? "e+log g" : "e";
  const columns = [
    { symbol: "e", name: "e", part: "e", width: 1.15 }, ...prior ? [{ symbol: "g", name: "g", part: "g", width: 0.9 }] : [],
    { symbol: "n", name: isSparse ? `${input}−τ` : `exp(${input}−max)`, part: "share", width: 1.15 }, { symbol: "a", name: "a", part: "a", width: 1.15 },
    { symbol: "v", name: "v", part: "v", width: 0.75 }, { symbol: "c", name: "a·v", part: "av", width: 0.8 },
  ];
  const total = columns.reduce((sum, { width }) => sum + width, 0);
  return columns.map((column) => ({ ...column, width: room * column.width / total }));
}

/**
 * A line for each key: its score, share and weight as bars, its value, and its part of the context; below them the sums.
 * @param {SVGElement} root @param {Cells} cell @param {Steps} steps @param {{ top: number, left: number, width: number, line: number }} box
 */
function drawKeys(root, cell, steps, { top, left, width, line }) {
  const { keys, shown, prior, shares, total, sum } = steps, columns = columnsOf(cell, steps, width - left), values = cell.values.slice(0, keys), parts = values.map((value, key) => value.map((number) => number * cell.weights[key]));
  const scores = cell.scores.slice(0, keys).filter((_, key) => cell.allowed[key]), low = Math.min(0, ...scores), high = Math.max(0, ...scores);
  const dims = picked(cell.context, SHORT), mostValue = furthest(values.flat()), mostPart = furthest([...parts.flat(), ...cell.context]), mostShare = furthest(shares), isSparse = cell.normalizer === "Sparsemax";
  const bottom = top + HEAD + keys * line, below = (/** @type {number} */ y) => y + line / 2 + FONT * 0.36;
  root.append(
    svg("rect", { class: "chosen", x: 0, y: top + HEAD + shown * line, width, height: line, rx: 2 }),
    ...Array.from({ length: keys }, (_, key) => svg("g", { class: cell.allowed[key] ? "" : "hidden-key", "data-key": key },
      svg("rect", { class: "hit", x: 0, y: top + HEAD + key * line, width: left, height: line, "data-part": "key", "data-key": key }),
      text(short(withoutMark(cell.columns[key]), 11), left - 5, below(top + HEAD + key * line), "end", key === shown ? "chosen-label" : ""))),
  );
  let x = left;
  for (const { symbol, name, part, width: wide } of columns) {
    const number = part === "e" ? 34 : 26, isStrip = part === "v" || part === "av", inner = wide - 6, bar = inner - number;
    const group = svg("g", { "data-symbol": symbol }, text(name, x + 1, top + 11, "start", "head"));
    for (let key = 0; key < keys; key++) {
      const y = top + HEAD + key * line, data = { "data-part": part, "data-key": key };
      if (isStrip) {
        group.append(...strip(part === "v" ? values[key] : parts[key], dims, part === "v" ? mostValue : mostPart, { x, y: y + 1, width: inner, height: line - 2 }, data));
        continue;
      }
      const value = part === "e" ? cell.scores[key] : part === "g" ? (prior ?? [])[key] : part === "share" ? shares[key] : cell.weights[key];
      const span = part === "e" ? high - low || 1 : part === "share" ? mostShare : 1, from = part === "e" ? -low : 0;
      const [start, end] = value < 0 ? [from + value, from] : [from, from + value], clipped = (/** @type {number} */ at) => clamp(at / span, 1) * bar;
      const isHidden = !cell.allowed[key] && part !== "g";
      group.append(
        svg("rect", { class: "hit", x, y, width: inner, height: line, ...data, "data-value": exact(value) }),
        svg("rect", { class: part === "a" ? "bar weight" : "bar", x: x + clipped(start), y: y + 2, width: Math.max(clipped(end) - clipped(start), isHidden ? 0 : 0.75), height: line - 4 }),
        text(isHidden && part !== "e" ? "–" : written(value, Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2), x + inner, below(y), "end", "number"),
      );
    }
    root.append(group);
    const y = bottom + 2, under = (/** @type {string} */ sign, /** @type {string} */ of, /** @type {number} */ value, /** @type {string} */ written) =>
      root.append(svg("g", { "data-symbol": sign }, svg("rect", { class: "hit", x, y, width: inner, height: 15, "data-part": of, "data-value": exact(value) }), text(written, x + inner, y + 11, "end", "sum")));
    if (part === "share") under("z", "total", total, `${isSparse ? "τ" : "∑"} ${written(total)}`);
    if (part === "a") under("a", "sum", sum, `∑ ${written(sum)}`);
    if (part === "v") root.append(text("∑ = c", x + inner, y + 11, "end", "sum"));
    if (part === "av") root.append(svg("g", { "data-symbol": "c" }, ...strip(cell.context, dims, mostPart, { x, y: y + 1, width: inner, height: STRIP }, { "data-part": "c" })));
    if (part === "e" && isSparse) {
      const at = x + clamp((total - low) / (high - low || 1), 1) * bar;
      root.append(svg("g", { "data-symbol": "z" }, svg("path", { class: "threshold", d: `M${at} ${top + HEAD}V${bottom}`, "data-part": "total", "data-value": exact(total) })));
    }
    x += wide;
  }
  return bottom + 20;
}

/** Says what a part of the picture is, and its number. @param {Cells} cell @param {string} rowName @param {Steps} steps @param {DOMStringMap | {}} data */
function reading(cell, rowName, { strips, shown, prior, highest, shares, total, sum }, data) {
  const { part, key: keyText, dim } = /** @type {DOMStringMap} */ (data), key = keyText === undefined ? shown : Number(keyText), m = Number(dim), name = quoted(cell.columns[key]);
  const isSparse = cell.normalizer === "Sparsemax", values = (/** @type {string} */ of) => strips.find((one) => one.part === of)?.values ?? [];
  const weight = cell.weights[key], a = decimal(weight, 3), input = prior && cell.renormalized ? `${written(cell.scores[key], 3)} + log ${decimal(prior[key], 3)}` : written(cell.scores[key], 3);
  if (!cell.allowed[key] && part !== "total" && part !== "sum" && part !== "c") return label("notAllowed", name);
  const of = (/** @type {string} */ symbol) => `${symbol}${index(m + 1)}`;
  const [query, keyed, product] = [cell.query[m], cell.keys[key][m], values("product")[m]];
  const isGaussian = cell.scorer.startsWith("Gaussian");
  switch (part) {
    case "q": return `${label("partQ", quoted(rowName))} ${of("q")} = ${written(query, 3)}`;
    case "k": return `${label("partK", name)} ${of("k")} = ${written(keyed, 3)}`;
    case "va": return `${label("partVa")} ${of("vₐ")} = ${written(values("va")[m], 3)}`;
    case "tanh": return `tanh(${of("q")} + ${of("k")}) = tanh(${written(query, 3)} + ${factor(keyed, 3)}) = ${written(values("tanh")[m], 3)}`;
    case "product": return cell.vector ? `${of("vₐ")} · tanh = ${written(values("va")[m], 3)} · ${factor(values("tanh")[m], 3)} = ${written(product, 3)}`
      : isGaussian ? `${of("q")} · ${of("k")} − ${of("k")}²⁄2 = ${written(query, 3)} · ${factor(keyed, 3)} − ${written(keyed ** 2 / 2, 3)} = ${written(product, 3)}`
      : `${of("q")} · ${of("k")} = ${written(query, 3)} · ${factor(keyed, 3)} = ${written(product, 3)}`;
    case "e": return strips.length ? label("partE", name, written(cell.scores[key], 3), cell.query.length) : label("everyScoreIs0");
    case "g": return label("partG", written(cell.center ?? 0, 2), name, decimal((prior ?? [])[key], 3));
    case "share": return isSparse ? label("partSparse", name, `max(${input} − ${factor(total, 3)}${SEPARATOR}0) = ${decimal(shares[key], 3)}`)
      : label("partExp", name, `exp(${input} − ${factor(highest, 3)}) = ${decimal(shares[key], 3)}`);
    case "total": return isSparse ? label("partThreshold", written(total, 3)) : label("partTotal", decimal(total, 3));
    case "a": {
      const share = isSparse ? decimal(shares[key], 3) : `${decimal(shares[key], 3)} / ${decimal(total, 3)}`;
      return label("partA", name, prior && !cell.renormalized ? `${decimal(prior[key], 3)} · ${share} = ${a}` : isSparse ? a : `${share} = ${a}`);
    }
    case "sum": return label("partSum", decimal(sum, 3));
    case "v": return `${label("partV", name)} ${of("v")} = ${written(cell.values[key][m], 3)}`;
    case "av": return `${label("partAv", name)} a · ${of("v")} = ${a} · ${factor(cell.values[key][m], 3)} = ${written(weight * cell.values[key][m], 3)}`;
    case "c": return `${label("partC")} ${of("c")} = ${written(cell.context[m], 3)}`;
    default: return strips.length || prior
      ? label("worked", name, written(cell.scores[key], 3), isSparse ? `max(${input} − ${factor(total, 3)}${SEPARATOR}0)` : `exp(${input} − ${factor(highest, 3)}) / ${decimal(total, 3)}`, prior && !cell.renormalized ? `${decimal(prior[key], 3)} · ` : "", a)
      : label("everyScoreIs0");
  }
}

/** What a symbol is, with a note on the scorer's own projections. @param {Cells} cell @param {string} rowName @param {Steps} steps @param {string} symbol */
function about(cell, rowName, steps, symbol) {
  const part = { e: "e", g: "g", n: "share", z: "total", a: "a" }[symbol];
  if (part) return reading(cell, rowName, steps, { part });
  const name = quoted(cell.columns[steps.shown]), notes = { ScaledDot: "noteScaledDot", General: "noteGeneral", Location: "noteLocation", Gaussian: "noteGaussian", GaussianLearned: "noteGaussian", Additive: "noteAdditive", Concat: "noteConcat" };
  const note = symbol === "q" || symbol === "k" ? notes[/** @type {keyof typeof notes} */ (cell.scorer)] : undefined;
  const says = { q: label("partQ", quoted(rowName)), k: label("partK", name), va: label("partVa"), v: label("partV", name), c: label("partC") }[symbol] ?? "";
  return note ? `${says} ${label(note, cell.query.length)}` : says;
}

/** @param {string | undefined} symbol */
function light(symbol) {
  for (const item of element.explanation.querySelectorAll("[data-symbol]")) item.classList.toggle("lit", /** @type {HTMLElement} */ (item).dataset.symbol === symbol);
}

/** The parts of the picture as lines of a table, for the arrow keys. @param {SVGElement} root */
function navigableLines(root) {
  /** @type {Map<number, SVGElement[]>} */
  const lines = new Map();
  for (const item of /** @type {NodeListOf<SVGGraphicsElement>} */ (root.querySelectorAll("[data-part]"))) {
    const { y, height } = item.getBBox(), line = Math.round((y + height / 2) / 6);
    const near = [line, line - 1, line + 1].find((one) => lines.has(one)) ?? line;
    lines.set(near, [...lines.get(near) ?? [], item]);
  }
  const middle = (/** @type {SVGElement} */ item) => { const { x, width } = /** @type {SVGGraphicsElement} */ (item).getBBox(); return x + width / 2; };
  return [...lines.entries()].sort(([one], [other]) => one - other).map(([, items]) => items.map((item) => ({ item, x: middle(item) })).sort((one, other) => one.x - other.x));
}

/**
 * Draws the picture and its equations.
 * @param {Cells} cell @param {string} rowName the piece that the map writes beside the row
 * @param {number | null} column the key to show, by default the one with the largest weight
 * @param {(column: number) => void} choose called with the key that is clicked
 * @returns the key that is shown
 */
export function drawCell(cell, rowName, column, choose) {
  const steps = stepsOf(cell, column), container = element.picture, width = Math.max(container.clientWidth, 240);
  const left = clamp(Math.ceil(Math.max(...cell.columns.map((piece) => measured(short(withoutMark(piece), 11), FONT)), ...steps.strips.map(({ name }) => measured(name, FONT)), 46)) + 6, 92);
  const root = picture(width, 100, label("cellPicture", quoted(rowName), quoted(cell.columns[steps.shown])));
  const top = drawProducts(root, cell, rowName, steps, left, width), line = clamp(Math.floor((innerHeight - 560) / steps.keys), 20, 12);
  const height = drawKeys(root, cell, steps, { top, left, width, line });
  root.setAttribute("height", String(height));
  root.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const say = (/** @type {string} */ words) => { element.reading.textContent = words; };
  /** @param {Element | null} item */
  const point = (item) => {
    for (const old of root.querySelectorAll(".pointed")) old.classList.remove("pointed");
    const data = /** @type {SVGElement | null} */ (item)?.dataset ?? {};
    light(/** @type {HTMLElement | null} */ (item?.closest("[data-symbol]"))?.dataset.symbol);
    // The same number of every vector is marked at once.
    const same = data.dim === undefined ? "" : ["v", "av", "c"].includes(data.part ?? "") ? `:is([data-part="v"], [data-part="av"], [data-part="c"])[data-dim="${data.dim}"]`
      : `:is([data-part="q"], [data-part="k"], [data-part="va"], [data-part="tanh"], [data-part="product"])[data-dim="${data.dim}"]`;
    if (same) for (const one of root.querySelectorAll(same)) one.classList.add("pointed");
    else item?.classList.add("pointed");
    say(reading(cell, rowName, steps, data));
  };
  for (const kind of /** @type {const} */ (["pointerover", "pointerdown"])) root.addEventListener(kind, (event) => { const item = hit(event, "[data-part]"); if (item) point(item); });
  root.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") point(null); });
  root.addEventListener("click", (event) => {
    const { key } = hit(event, "[data-key]")?.dataset ?? {};
    if (key !== undefined && Number(key) !== steps.shown) choose(Number(key));
  });
  listenToArrows(root, point, choose);
  element.equation.replaceChildren(...equations(cell));
  const symbols = /** @type {NodeListOf<HTMLElement>} */ (element.equation.querySelectorAll("[data-symbol]"));
  symbols[0]?.setAttribute("tabindex", "0");
  for (const item of symbols) {
    for (const kind of ["pointerover", "focus", "click"]) item.addEventListener(kind, (event) => { event.stopPropagation(); light(item.dataset.symbol); say(about(cell, rowName, steps, item.dataset.symbol ?? "")); });
    for (const kind of ["pointerout", "blur"]) item.addEventListener(kind, () => point(null));
  }
  element.equation.onkeydown = (event) => {
    const move = ARROWS[event.key], at = [...symbols].indexOf(/** @type {HTMLElement} */ (document.activeElement)), next = move && at >= 0 ? symbols[at + move[0] + move[1]] : undefined;
    if (!move || hasModifier(event)) return;
    event.preventDefault();
    if (!next) return;
    symbols[at].setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  };
  replace(container, root);
  point(null);
  return steps.shown;
}

/** The arrow keys move from part to part, and Enter shows the products of a part's key. @param {SVGElement} root @param {(item: Element | null) => void} point @param {(key: number) => void} choose */
function listenToArrows(root, point, choose) {
  /** @type {ReturnType<typeof navigableLines> | null} */
  let lines = null;
  let [line, at] = [0, -1];
  root.addEventListener("keydown", (event) => {
    const move = ARROWS[event.key];
    const all = lines ??= navigableLines(root), current = all[line]?.[at];
    if (event.key === "Enter" && current?.item.dataset.key !== undefined) choose(Number(current.item.dataset.key));
    if (event.key === "Escape" && current) { event.stopPropagation(); at = -1; point(null); }
    if (!move || hasModifier(event)) return;
    event.preventDefault();
    event.stopPropagation();
    if (!current) at = 0;
    else if (move[1]) at = clamp(at + move[1], all[line].length - 1);
    else {
      line = clamp(line + move[0], all.length - 1);
      at = all[line].reduce((best, { x }, i) => Math.abs(x - current.x) < Math.abs(all[line][best].x - current.x) ? i : best, 0);
    }
    point(all[line][at].item);
  });
  root.addEventListener("blur", () => { point(null); });
}
