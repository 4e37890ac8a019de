// @ts-check
// The engine of a page that is one file: it asks a Web Worker, whose program and models are inside the page.

import { language } from "../language.js";
import { Refused, Unreachable } from "./interface.js";
import { message } from "./messages.js";

/** @typedef {{ resolve: (answer: any) => void, reject: (error: Error) => void, tell: (step: any) => void }} Waiting */

/** @type {Map<number, Waiting>} */
const waiting = new Map();
let asked = 0;

const contentOf = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id)).textContent ?? "";

/** @param {string} text in base64 */
function bytesOf(text) {
  const characters = atob(text.trim());
  const bytes = new Uint8Array(characters.length);
  for (let index = 0; index < characters.length; index++) bytes[index] = characters.charCodeAt(index);
  return bytes.buffer;
}

/** The worker, and its runs; begun at the first question. */
const begun = (() => {
  /** @type {{ worker: Worker, runs: Promise<any> } | null} */
  let known = null;
  return () => known ??= begin();
})();

function begin() {
  const worker = new Worker(URL.createObjectURL(new Blob([contentOf("engine")], { type: "text/javascript" })));
  worker.onmessage = ({ data: { id, step, answer, error, refusal } }) => {
    const question = waiting.get(id);
    if (!question) return;
    if (step) {
      question.tell(step);
      return;
    }
    waiting.delete(id);
    if (error === undefined) question.resolve(answer);
    else question.reject(refusal ? new Refused(message(language, refusal.named, refusal.values)) : new Error(error));
  };
  worker.onerror = (event) => {
    for (const { reject } of waiting.values()) reject(new Unreachable(event.message, message(language, "crashed", [])));
    waiting.clear();
  };
  if (!("DecompressionStream" in globalThis)) return { worker, runs: Promise.reject(new Error(message(language, "old", []))) };
  const file = bytesOf(contentOf("runs"));
  return { worker, runs: posted(worker, { file }, [file]) };
}

/** @param {Worker} worker @param {object} content @param {Transferable[]} [moved] @param {AbortSignal} [signal] @param {(step: any) => void} [tell] @returns {Promise<any>} */
function posted(worker, content, moved = [], signal, tell = () => {}) {
  return new Promise((resolve, reject) => {
    const id = ++asked;
    const withdraw = () => {
      waiting.delete(id);
      worker.postMessage({ withdrawn: id });
      reject(new DOMException("The question was withdrawn.", "AbortError"));
    };
    if (signal?.aborted) {
      withdraw();
      return;
    }
    signal?.addEventListener("abort", withdraw);
    const settle = (/** @type {(result: any) => void} */ end) => (/** @type {any} */ result) => {
      signal?.removeEventListener("abort", withdraw);
      end(result);
    };
    waiting.set(id, { resolve: settle(resolve), reject: settle(reject), tell });
    worker.postMessage({ ...content, id }, moved);
  });
}

/** @param {string} method @param {object} question @param {AbortSignal} signal @param {(step: any) => void} [tell] */
async function ask(method, question, signal, tell) {
  const { worker, runs } = begun();
  await runs;
  return posted(worker, { method, question }, [], signal, tell);
}

/** Takes the place of http.js, and so has its name. @type {import("./interface.js").Engine} */
export const http = {
  runs: () => begun().runs,
  describe: (run, signal) => ask("describe", { run }, signal),
  examples: (run, signal) => ask("examples", { run }, signal),
  translate: (question, signal, tell) => ask("translate", question, signal, tell),
  line: (question, signal) => ask("line", question, signal),
  attend: (question, signal) => ask("attend", question, signal),
  intervene: (question, signal) => ask("intervene", question, signal),
  alternatives: (question, signal) => ask("alternatives", question, signal),
  explain: (question, signal) => ask("explain", question, signal),
  attribute: (question, signal, tell) => ask("attribute", question, signal, tell),
  align: (question, signal) => ask("align", question, signal),
};
