// @ts-check
// The equations of one row of a map as MathML. Each symbol has the name (data-symbol) of its part of the picture.

import { filled } from "../dom.js";
import { SEPARATOR, decimal } from "../language.js";

/** @typedef {import("../engine/interface.js").Cells} Cells */

const NAMESPACE = "http://www.w3.org/1998/Math/MathML";

/** @param {string} tag @param {(Node | string)[]} children */
const node = (tag, ...children) => filled(document.createElementNS(NAMESPACE, tag), {}, children);
const i = (/** @type {string} */ name) => node("mi", name), o = (/** @type {string} */ sign) => node("mo", sign), n = (/** @type {string} */ number) => node("mn", number);
const row = (/** @type {Node[]} */ ...parts) => node("mrow", ...parts);
const math = (/** @type {Node[]} */ ...parts) => filled(node("math", row(...parts)), { displaystyle: "true" }, []);

/** A symbol with an index, or two, that lights up with its part of the picture. @param {string} symbol @param {string} name @param {string[]} indices */
function lit(symbol, name, ...indices) {
  const index = indices.length > 1 ? row(i(indices[0]), o(","), i(indices[1])) : i(indices[0]);
  return filled(node("msub", i(name), index), { "data-symbol": symbol, tabindex: -1 }, []);
}

/** A term that lights up as a whole. @param {string} symbol @param {Node[]} parts */
const whole = (symbol, ...parts) => filled(row(...parts), { "data-symbol": symbol, tabindex: -1 }, []);

const q = () => lit("q", "q", "t"), k = () => lit("k", "k", "i"), e = (index = "i") => lit("e", "e", "t", index), g = () => lit("g", "g", "t", "i");
const half = (/** @type {Element} */ squared) => node("mfrac", squared, n("2"));
const product = () => row(q(), o("⋅"), k());
const gaussian = () => row(product(), o("−"), half(row(o("‖"), k(), node("msup", o("‖"), n("2")))));
const additive = () => row(lit("va", "v", "a"), o("⋅"), i("tanh"), o("("), q(), o("+"), k(), o(")"));

/** The score of each scorer, by the name of its class. @type {Record<string, () => Element>} */
const SCORES = {
  Dot: product, ScaledDot: product, General: product, Location: product, Gaussian: gaussian, GaussianLearned: gaussian, NoScore: () => n("0"),
  Additive: additive, Concat: additive,
};

/** What the normalizer receives: the score, or with a renormalized window the score and the log of the prior. @param {Cells} cell @param {string} index */
const normalized = (cell, index) => cell.log_prior && cell.renormalized ? [e(index), o("+"), i("log"), lit("g", "g", "t", index)] : [e(index)];

/** @param {Cells} cell */
function weights(cell) {
  const exp = (/** @type {string} */ index) => row(i("exp"), o("("), ...normalized(cell, index), o(")"));
  const share = cell.normalizer === "Sparsemax"
    ? whole("n", i("max"), o("("), ...normalized(cell, "i"), o("−"), filled(i("τ"), { "data-symbol": "z", tabindex: -1 }, []), o(","), n("0"), o(")"))
    : node("mfrac", whole("n", exp("i")), whole("z", node("munder", o("∑"), i("j")), exp("j")));
  return cell.log_prior && !cell.renormalized ? [g(), share] : [share];
}

/** The score, the weight and the context. @param {Cells} cell */
export const equations = (cell) => [
  math(e(), o("="), SCORES[cell.scorer]()),
  math(lit("a", "a", "t", "i"), o("="), ...weights(cell)),
  math(lit("c", "c", "t"), o("="), node("munder", o("∑"), i("i")), lit("a", "a", "t", "i"), o("⁢"), lit("v", "v", "i")),
];

/** A number with a true minus sign, and no sign before 0. @param {number} number */
export function written(number, digits = 2) {
  const text = decimal(Math.abs(number), digits);
  return number < 0 && /[1-9]/.test(text) ? `−${text}` : text;
}

/** A factor, in parentheses if it is negative. @param {number} number */
export const factor = (number, digits = 2) => written(number, digits).startsWith("−") ? `(${written(number, digits)})` : written(number, digits);

export const numbers = (/** @type {number[]} */ vector) => `(${vector.slice(0, 4).map((x) => written(x)).join(SEPARATOR)}${vector.length > 4 ? `${SEPARATOR}…` : ""})`;
