// @ts-check
// The hypotheses of a beam search as a tree: a column for each step, with the best hypothesis at the top.

import { svg } from "../draw.js";
import { decimal } from "../language.js";
import { joinPieces } from "../words.js";

/** @typedef {import("../engine/interface.js").Hypothesis} Hypothesis */

const WIDTH = 104, HEIGHT = 26, TOP = 16;

const pathOf = (/** @type {string[]} */ pieces) => pieces.join("\u0000");

/**
 * @param {HTMLElement} container
 * @param {Hypothesis[][]} steps the unfinished hypotheses after each step, best first
 * @param {Hypothesis} best the translation, including the piece that ends it
 */
export function drawBeam(container, steps, best) {
  const most = Math.max(...steps.map((beams) => beams.length));
  const root = svg("svg", { width: WIDTH * (Math.max(steps.length, best.pieces.length) + 0.3), height: TOP + HEIGHT * (most + 1) + 4, role: "img", "aria-label": container.dataset.name ?? "" });
  /** @type {Map<string, [number, number]>} */
  const places = new Map();
  const isBest = (/** @type {string[]} */ pieces) => pieces.every((piece, i) => piece === best.pieces[i]);
  const add = (/** @type {Hypothesis} */ { pieces, log_prob }, /** @type {number} */ x, /** @type {number} */ y) => {
    places.set(pathOf(pieces), [x, y]);
    const parent = places.get(pathOf(pieces.slice(0, -1)));
    const kind = isBest(pieces) ? "best" : "other";
    if (parent) {
      const [fromX, fromY] = [parent[0] + WIDTH - 26, parent[1] - 4];
      root.prepend(svg("path", { class: kind, d: `M${fromX} ${fromY}C${fromX + 14} ${fromY} ${x - 16} ${y - 4} ${x - 3} ${y - 4}` }));
    }
    const title = svg("title", {}, `${joinPieces(pieces)}: ${decimal(log_prob, 3)}`);
    const piece = pieces.at(-1) ?? "";
    root.append(svg("text", { class: kind, x, y }, `${[...piece].slice(0, 8).join("")} `, svg("tspan", { class: "number" }, decimal(log_prob, 1).replace("-", "−")), title));
  };
  steps.forEach((beams, step) => beams.forEach((hypothesis, rank) => add(hypothesis, step * WIDTH + 8, TOP + rank * HEIGHT + 8)));
  const last = places.get(pathOf(best.pieces.slice(0, -1)));
  if (last) add(best, last[0] + WIDTH, TOP + most * HEIGHT + 8); // below the unfinished hypotheses
  container.replaceChildren(root);
}
