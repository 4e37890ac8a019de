// The elements of the page by their ids, and functions that make common small elements.

export const element = Object.fromEntries([...document.querySelectorAll("[id]")].map((found) => [found.id, found]));

export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function button(text, act) {
  const made = make("button", { type: "button" }, text);
  made.addEventListener("click", act);
  return made;
}

// A table of texts whose first row and first column are headers.
export function fillTable(table, rows) {
  table.replaceChildren(...rows.map((cells, r) => make("tr", {}, ...cells.map((text, c) =>
    (r === 0 || c === 0) && text ? make("th", { scope: r === 0 ? "col" : "row" }, text) : make("td", {}, text)))));
}

export function fillSelect(select, choices, chosen) {
  select.replaceChildren(...choices.map(([value, text]) => new Option(text, value, false, String(value) === String(chosen))));
  select.disabled = choices.length < 2;
}

// The text of pieces, in quotation marks.
export const clean = (text) => `“${text.replaceAll("\u2581", " ").trim() || text}”`;
// A number with its sign, unless it is 0.00.
export function signed(value) {
  const digits = Math.abs(value).toFixed(2);
  return Number(digits) === 0 ? digits : `${value < 0 ? "−" : "+"}${digits}`;
}
