// The equation of a scorer and a normalizer as MathML.

const NAMESPACE = "http://www.w3.org/1998/Math/MathML";

const node = (tag, ...children) => {
  const element = document.createElementNS(NAMESPACE, tag);
  element.append(...children);
  return element;
};
const i = (name) => node("mi", name), o = (sign) => node("mo", sign), n = (number) => node("mn", number);
const sub = (name, index) => node("msub", i(name), i(index));
const row = (...parts) => node("mrow", ...parts);
const times = () => o("\u2062");
const dot = () => o("⋅");

const q = () => sub("q", "t"), k = () => sub("k", "i");
const SCORES = {
  Dot: () => row(q(), dot(), k()),
  ScaledDot: () => node("mfrac", row(q(), dot(), k()), node("msqrt", i("d"))),
  General: () => row(q(), dot(), i("W"), times(), k()),
  Additive: () => row(i("v"), dot(), i("tanh"), o("("), sub("W", "q"), times(), q(), o("+"), sub("W", "k"), times(), k(), o(")")),
  Concat: () => row(i("v"), dot(), i("tanh"), o("("), i("W"), o("["), q(), o(";"), k(), o("]"), o(")")),
  Location: () => row(sub("(W q", "t"), o(")"), i("i")),
  Gaussian: () => row(o("−"), node("mfrac", row(node("msup", row(o("‖"), q(), o("−"), k(), o("‖")), n("2"))), n("2"))),
  GaussianLearned: () => row(o("−"), node("mfrac", row(node("msup", row(i("w"), times(), o("‖"), q(), o("−"), k(), o("‖")), n("2"))), n("2"))),
  NoScore: () => n("0"),
};

export function equation(cell) {
  const math = node("math");
  math.setAttribute("display", "block");
  const score = (SCORES[cell.scorer] ?? (() => row(i("score"), o("("), q(), o(","), k(), o(")"))))();
  const normalizer = node("mi", cell.normalizer.toLowerCase());
  const prior = cell.log_prior ? [times(), sub("g", "i")] : [];
  math.append(row(
    sub("c", "t"), o("="), node("munder", o("∑"), i("i")), sub("a", "i"), times(), sub("v", "i"), o(","), node("mspace"),
    sub("a", "i"), o("="), normalizer, o("("), score, o(")"), ...prior,
  ));
  return math;
}
