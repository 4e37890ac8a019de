// @ts-check
// A small picture of a map, for a table of all heads.

import { colorOf, scale } from "./colors.js";
import { make } from "./dom.js";

const SHADES = 64;

/** The shades of each color scale. @type {Map<string[], number[][]>} */
const shadesOf = new Map();

function shadesNow() {
  const colors = scale(), shades = shadesOf.get(colors) ?? [...Array(SHADES + 1).keys()].map((shade) => colorOf(shade / SHADES));
  shadesOf.set(colors, shades);
  return shades;
}

/** A map with a pixel for each cell. @param {number[][]} weights @param {number} most the weight with the last color */
export function thumbnail(weights, most) {
  const [width, height] = [weights[0].length, weights.length];
  const canvas = make("canvas", { width, height, "aria-hidden": true }), context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const pixels = context.createImageData(width, height), shades = shadesNow();
  weights.flat().forEach((weight, cell) => pixels.data.set([...shades[Math.round(Math.min(weight / most, 1) * SHADES) || 0], 255], 4 * cell));
  context.putImageData(pixels, 0, 0);
  return canvas;
}
