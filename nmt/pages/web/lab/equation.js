// @ts-check
// How one row of a map is computed: its equations as MathML, and one score worked out with its numbers.

import { filled, make } from "../dom.js";
import { label } from "../i18n.js";

const NAMESPACE = "http://www.w3.org/1998/Math/MathML";

/** @param {string} tag @param {(Node | string)[]} children */
const node = (tag, ...children) => filled(document.createElementNS(NAMESPACE, tag), {}, children);
const i = (/** @type {string} */ name) => node("mi", name), o = (/** @type {string} */ sign) => node("mo", sign), n = (/** @type {string} */ number) => node("mn", number);
const sub = (/** @type {string} */ name, /** @type {string} */ index) => node("msub", i(name), i(index));
const row = (/** @type {Node[]} */ ...parts) => node("mrow", ...parts);
const at = (/** @type {string} */ name, index = "i") => node("msub", i(name), row(i("t"), o(","), i(index)));
const math = (/** @type {Node[]} */ ...parts) => filled(node("math", row(...parts)), { display: "block" }, []);

// q and k are shown as the scorer uses them, after its own projections, which the notes describe.
const q = () => sub("q", "t"), k = () => sub("k", "i");
const product = () => row(q(), o("⋅"), k());
const additive = () => row(sub("v", "a"), o("⋅"), i("tanh"), o("("), q(), o("+"), k(), o(")"));
/** The score of each scorer, and the name of a note on its projections. @type {Record<string, [() => Element, string?]>} */
const SCORES = {
  Dot: [product], ScaledDot: [product, "noteScaledDot"], General: [product, "noteGeneral"], Location: [product, "noteLocation"],
  Gaussian: [product, "noteGaussian"], GaussianLearned: [product, "noteGaussian"], NoScore: [() => n("0")],
  Additive: [additive, "noteAdditive"], Concat: [additive, "noteConcat"],
};

/** @param {string} normalizer */
function weights(normalizer) {
  if (normalizer !== "Softmax") return row(i(normalizer.toLowerCase()), o("("), sub("e", "t"), o(")"));
  const exp = (/** @type {string} */ index) => node("msup", i("e"), at("e", index));
  return node("mfrac", exp("i"), row(node("munder", o("∑"), i(label("allowedKeys"))), exp("j")));
}

/** A number with a true minus sign, and no sign before 0. @param {number} number */
export function written(number, digits = 2) {
  const text = Math.abs(number).toFixed(digits);
  return number < 0 && Number(text) !== 0 ? `−${text}` : text;
}

export const numbers = (/** @type {number[]} */ vector) => `(${vector.slice(0, 4).map((x) => written(x)).join(", ")}${vector.length > 4 ? ", …" : ""})`;
const factor = (/** @type {number} */ number) => written(number).startsWith("−") ? `(${written(number)})` : written(number);

/** @param {import("../engine/interface.js").Cells} cell @param {number} column the key whose score is worked out in numbers */
export function equations(cell, column) {
  const [score, note] = SCORES[cell.scorer];
  const prior = cell.log_prior ? [o("⋅"), at("g")] : [];
  const key = cell.keys[column];
  const term = (/** @type {number} */ m) => cell.vector
    ? `${factor(cell.vector[m])} tanh(${factor(cell.query[m])} + ${factor(key[m])})` : `${factor(cell.query[m])} ⋅ ${factor(key[m])}`;
  const most = Math.min(key.length, cell.vector ? 2 : 3);
  const terms = [...Array(most).keys()].map(term).join(" + ") + (key.length > most ? " + …" : "");
  const worked = label("worked", cell.columns[column], terms, key.length, written(cell.scores[column], 3), cell.weights[column].toFixed(4));
  return [
    math(at("e"), o("="), score()), math(at("a"), o("="), weights(cell.normalizer), ...prior),
    math(sub("c", "t"), o("="), node("munder", o("∑"), i("i")), at("a"), o("⁢"), sub("v", "i")),
    ...note ? [make("p", { class: "caption" }, label(note, cell.query.length))] : [],
    ...cell.scorer === "NoScore" ? [] : [make("p", {}, worked)],
  ];
}
