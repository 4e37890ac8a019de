// @ts-check
// The Web Worker of the page that is one file: it receives the runs, then questions, and answers one after another.

import { ANSWERS, openFile } from "./answers.js";
import { Refusal } from "./messages.js";

/** @typedef {{ id: number, method: string, question: any, file?: ArrayBuffer, withdrawn?: number }} Message */

/** @type {Map<string, import("./answers.js").Run>} */
let runs = new Map();
/** @type {Set<number>} */
const withdrawn = new Set();
let last = Promise.resolve();

const channel = new MessageChannel();
/** @type {(() => void)[]} */
const waiting = [];
channel.port1.onmessage = () => waiting.shift()?.();

/** Lets the messages that have arrived be read; setTimeout would wait longer. */
const breathe = () => new Promise((resolve) => {
  waiting.push(() => resolve(undefined));
  channel.port2.postMessage(null);
});

/** @param {Message} message */
async function answer({ id, method, question, file }) {
  const pause = async () => {
    await breathe();
    if (withdrawn.has(id)) throw new DOMException("The question was withdrawn.", "AbortError");
  };
  try {
    await pause();
    if (file) {
      const stream = new Blob([file]).stream().pipeThrough(new DecompressionStream("deflate"));
      runs = openFile(await new Response(stream).arrayBuffer());
      globalThis.postMessage({ id, answer: [...runs.values()].map(({ stored: { name, source, target } }) => ({ name, source, target })) });
      return;
    }
    const run = runs.get(question.run);
    if (!run) throw new Refusal("noRun", question.run);
    const result = await ANSWERS[method](run, question, (step) => globalThis.postMessage({ id, step }), pause);
    globalThis.postMessage({ id, answer: result });
  } catch (error) {
    const refusal = error instanceof Refusal ? { named: error.named, values: error.values } : null;
    if (!refusal && !(error instanceof DOMException)) console.error(error); // a bug: its lines are in the console
    globalThis.postMessage({ id, error: error instanceof Error ? error.message : String(error), refusal });
  }
  withdrawn.delete(id);
}

globalThis.onmessage = ({ data }) => {
  if (data.withdrawn === undefined) last = last.then(() => answer(data));
  else withdrawn.add(data.withdrawn);
};
