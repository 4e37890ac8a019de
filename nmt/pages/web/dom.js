// @ts-check
// Elements of a page.

/**
 * An element that has an id in the page, with the properties of fields, boxes and tables.
 * @typedef {HTMLElement & { value: any } & Pick<HTMLInputElement,
 *   "checked" | "disabled" | "max" | "placeholder" | "reportValidity" | "type">
 *   & Pick<HTMLDetailsElement, "open"> & Pick<HTMLSelectElement, "options"> & Pick<HTMLTableElement, "rows">
 *   & Pick<HTMLAnchorElement, "href"> & Pick<HTMLFormElement, "requestSubmit">} PageElement
 * @typedef {Record<string, string | number | boolean>} Attributes
 * @typedef {{ ctrlKey: boolean, metaKey: boolean, altKey: boolean }} Modifiers
 */

/** The elements of the page by their ids. @type {Record<string, PageElement>} */
export const element = Object.fromEntries([...document.querySelectorAll("[id]:not(script)")].map((item) => [item.id, /** @type {any} */ (item)]));

/**
 * The descendant that a selector names. It must exist.
 * @param {ParentNode} root @param {string} selector @returns {HTMLElement}
 */
export const part = (root, selector) => /** @type {HTMLElement} */ (root.querySelector(selector));

/** The element under a pointer or with the focus that matches a selector. @param {Event} event @param {string} selector */
export const hit = (event, selector) => /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest(selector));

/**
 * @template {Element} E
 * @param {E} item @param {Attributes} attributes @param {(Node | string)[]} children
 */
export function filled(item, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) item.setAttribute(name, String(value));
  item.append(...children);
  return item;
}

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag @param {Attributes} attributes @param {(Node | string)[]} children
 */
export const make = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);

/** @param {string} text @param {() => void} act */
export function button(text, act) {
  const item = make("button", { type: "button" }, text);
  item.addEventListener("click", act);
  return item;
}

/** Focuses the button at this index, or the nearest one that is enabled. @param {HTMLButtonElement[]} buttons @param {number} index */
export function focusNear(buttons, index) {
  const distance = (/** @type {HTMLButtonElement} */ item) => Math.abs(buttons.indexOf(item) - index);
  const [nearest] = buttons.filter(({ disabled }) => !disabled).sort((one, other) => distance(one) - distance(other));
  nearest?.focus({ preventScroll: true });
}

/** Makes a text field as high as its text, in browsers that lack `field-sizing`. @param {HTMLElement} field */
export function fitHeight(field) {
  if (CSS.supports("field-sizing", "content")) return;
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

/** A table whose first row and first column are headers. @param {HTMLElement} table @param {string[][]} rows */
export function fillTable(table, rows) {
  table.replaceChildren(...rows.map((cells, r) => make("tr", {}, ...cells.map((text, c) =>
    (r === 0 || c === 0) && text ? make("th", { scope: r === 0 ? "col" : "row" }, text) : make("td", {}, text)))));
}

/** The arrow keys move the focus among the buttons of a table in this container, one of which the Tab key reaches. @param {HTMLElement} container the table, or what contains it */
export function listenToTable(container) {
  container.addEventListener("keydown", (event) => {
    const move = ARROWS[event.key], from = hit(event, "button"), cell = /** @type {HTMLTableCellElement | null} */ (from?.closest("td"));
    const table = /** @type {HTMLTableElement | null} */ (hit(event, "table"));
    if (!move || !from || !cell || !table || hasModifier(event)) return;
    event.preventDefault();
    event.stopPropagation();
    const row = table.rows[/** @type {HTMLTableRowElement} */ (cell.parentElement).rowIndex + move[0]];
    const next = row?.cells[cell.cellIndex + move[1]]?.querySelector("button");
    if (!next) return;
    from.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

/** Whether a text could be copied. A page loaded from another machine without TLS has no access to the clipboard, but an old command works there. @param {string} text */
export async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const focused = document.activeElement, field = make("textarea", { readonly: "" }, text);
  Object.assign(field.style, { position: "fixed", top: "0", opacity: "0" });
  document.body.append(field);
  /** @type {HTMLTextAreaElement} */ (/** @type {unknown} */ (field)).select();
  const isCopied = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  return isCopied;
}

/** Lets the Tab key reach a text that is longer than its place, so that the keyboard can scroll it. @param {HTMLElement} item */
export function reachIfLong(item) {
  if (item.scrollHeight > item.clientHeight + 1 && !item.querySelector("button")) item.tabIndex = 0;
  else item.removeAttribute("tabindex");
}

/** @param {PageElement} select @param {(string | number)[][]} choices value and text of each @param {string | number} chosen */
export function fillSelect(select, choices, chosen) {
  select.replaceChildren(...choices.map(([value, text]) => new Option(String(text), String(value), false, String(value) === String(chosen))));
  select.disabled = choices.length < 2;
}

/** Whether the visitor wants no motion. */
export const stillness = matchMedia("(prefers-reduced-motion: reduce)");

/** @param {number} value @param {number} most */
export const clamp = (value, most, least = 0) => Math.min(Math.max(value, least), most);

/** Whether a key belongs to a shortcut of the browser. @param {Modifiers} event */
export const hasModifier = (event) => event.ctrlKey || event.metaKey || event.altKey;

/** The move of an arrow key: rows down and columns to the right. @type {Record<string, [number, number]>} */
export const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
