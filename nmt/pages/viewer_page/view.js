// ---------------------------------------------------------------- what is shown

const MEAN = "mean";
const view = { pair: 0, site: "cross", unit: "pieces", rows: "predicts", compare: false };
// A place is {side, index}; in the heat map it also has a column. A hovered or focused place overrides the pinned one.
let pinned = null, hovered = null;
const panels = [];
const shownPanels = () => panels.filter((panel) => !panel.root.hidden);
const activePlace = () => hovered ?? pinned;
const samePlace = (one, other) => one?.side === other?.side && one?.index === other?.index && one?.column === other?.column;
const clamp = (value, most) => Math.min(Math.max(value, 0), most);
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
// Weights within half a rounding step of the largest count as equal to it.
const isLit = (weight, most) => weight > 0 && (weight >= 0.1 || weight >= most - 0.5 / STEPS);

function make(tag, attributes = {}, ...children) {
  const namespace = ["path"].includes(tag) ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml";
  const element = document.createElementNS(namespace, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function fillSelect(select, choices, chosen) {
  const options = choices.map(([value, text]) => {
    const option = make("option", { value }, text);
    option.selected = String(value) === String(chosen);
    return option;
  });
  select.replaceChildren(...options);
  select.disabled = choices.length < 2;
}

// A single layer or head has no mean to choose.
const choicesOf = (count) => count === 1 ? [0] : [MEAN, ...Array(count).keys()];
// A run may have fewer layers or heads than the previous one; the choice is kept for runs that have them.
const within = (wish, count) => count === 1 ? 0 : wish === MEAN ? MEAN : clamp(wish, count - 1);
const numbersOf = (choice, count) => choice === MEAN ? [...Array(count).keys()] : [choice];
