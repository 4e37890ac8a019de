// @ts-check
// Questions to the engine. A new question of a kind aborts an earlier one that is not answered yet.

import { http } from "../engine/http.js";
import { Busy, Unreachable } from "../engine/interface.js";
import { label } from "../i18n.js";

/** What computes. @type {import("../engine/interface.js").Engine} */
export const engine = http;

/** @type {Map<string, AbortController>} */
const pending = new Map();

/**
 * @template T
 * @param {string} kind @param {(signal: AbortSignal) => Promise<T>} ask
 */
export async function latest(kind, ask) {
  stop(kind);
  const controller = new AbortController();
  pending.set(kind, controller);
  try { return await ask(controller.signal); } finally {
    if (pending.get(kind) === controller) pending.delete(kind);
  }
}

/** Aborts the pending question of a kind, so that the engine stops computing the answer. @param {string} kind */
export function stop(kind) {
  pending.get(kind)?.abort();
  pending.delete(kind);
}

/** @param {number} milliseconds @param {AbortSignal} signal @returns {Promise<void>} */
const pause = (milliseconds, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, milliseconds);
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    reject(signal.reason);
  }, { once: true });
});

/**
 * Asks up to so many times, while the engine is busy.
 * @template T
 * @param {() => Promise<T>} ask @param {number} times @param {AbortSignal} signal
 * @param {(error: Busy) => void} [wait] called before each pause
 */
export async function patiently(ask, times, signal, wait = () => {}) {
  for (let attempt = 1; ; attempt++) {
    try { return await ask(); } catch (error) {
      if (!(error instanceof Busy) || attempt === times) throw error;
      wait(error);
      await pause(1000 * error.seconds, signal);
    }
  }
}

/** Whether an error only means that a later question was asked. @param {unknown} error */
export const isOutdated = (error) => error instanceof DOMException && error.name === "AbortError";

/** What the page says about an error. @param {unknown} error */
export function sentenceOf(error) {
  return error instanceof Unreachable ? error.sentence || label("failed") : error instanceof Error ? error.message : String(error);
}
