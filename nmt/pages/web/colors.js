// @ts-check
// The colors of weights.

/** @typedef {number[]} Color red, green and blue, from 0 to 255 */

// The magma color map in even steps of lightness. A weight of 0 has the color of the page.
const SCALES = {
  light: ["#ffffff", "#fed395", "#fea973", "#fa7d5e", "#ea5661", "#ca3e72", "#a5317e", "#802582", "#5c167f", "#36106b", "#140e36"],
  dark: ["#14131a", "#251255", "#4a1079", "#6e1e81", "#932b80", "#bc3978", "#e04c67", "#f6725c", "#fe9f6d", "#fecf92", "#fcfdbf"],
};
export const darkness = matchMedia("(prefers-color-scheme: dark)");
let isPrinting = false;
const isDark = () => darkness.matches && !isPrinting;
export const scale = () => SCALES[isDark() ? "dark" : "light"];

/** Does something with the colors for white paper, whatever the page looks like. @template T @param {() => T} act */
export function onPaper(act) {
  isPrinting = true;
  try { return act(); } finally { isPrinting = false; }
}

const channels = (/** @type {string} */ hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

/** @param {Color} from @param {Color} to @param {number} share from 0 to 1 */
const between = (from, to, share) => from.map((value, i) => Math.round(value + (to[i] - value) * share));

/** The color of a weight, as a share of the largest one. @param {number} share */
export function colorOf(share) {
  const stops = scale();
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  return between(channels(stops[low]), channels(stops[low + 1]), at - low);
}

/**
 * The color of a difference: white at 0 (in dark mode, black), red where the first weight is larger (in dark mode,
 * orange), and blue where the second is.
 * @param {number} share
 */
export function colorOfDifference(share) {
  const [none, first, second] = isDark() ? ["#14131a", "#fe9f6d", "#78b9ff"] : ["#ffffff", "#b2182b", "#2166ac"];
  return between(channels(none), channels(share > 0 ? first : second), Math.min(Math.abs(share), 1));
}

export const css = (/** @type {Color} */ color) => `rgb(${color.join(" ")})`;

/** Black or white, whichever has more contrast: at least 4.5 to 1 on any color. @param {Color} color */
export function inkOn(color) {
  const [r, g, b] = color.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}
