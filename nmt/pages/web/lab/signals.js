// @ts-check
// What a part of the lab asks of the whole page, which imports that part. lab.js connects them.

/** @typedef {import("../draw.js").Cell} Cell */
/**
 * @typedef {object} Answering
 * @property {(isDropped: boolean) => void} askAgain
 * @property {() => void} redraw
 * @property {() => void} drawAgain
 * @property {(cell: Cell) => void} selectCell
 * @property {(text: string) => void} translateBack
 */

/** @type {Partial<Answering>} */
const answering = {};

/** @param {Answering} functions */
export function answerSignals(functions) { Object.assign(answering, functions); }

/** Asks for everything that the page shows, after the state has changed. @param {boolean} [isDropped] whether changes of the previous translation have been dropped, which the page says */
export const askAgain = (isDropped = false) => answering.askAgain?.(isDropped);

/** Shows a changed choice of what the answers contain. */
export const redraw = () => answering.redraw?.();

/** Draws all maps again, because they have more or less room. */
export const drawAgain = () => answering.drawAgain?.();

/** Selects a row, a column or a cell of the translation's map. @param {Cell} cell */
export const selectCell = (cell) => answering.selectCell?.(cell);

/** Translates a text in the other direction. @param {string} text */
export const translateBack = (text) => answering.translateBack?.(text);
