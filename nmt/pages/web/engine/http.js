// @ts-check
// The engine that asks the server which serves the page.

import { language } from "../language.js";
import { Busy, Refused, Unreachable } from "./interface.js";

const SECONDS_TO_RETRY = 2;
const key = new URLSearchParams(location.search).get("api_key");

/** @template T @param {Promise<T>} promise @returns {Promise<T>} */
async function reached(promise) {
  try { return await promise; } catch (error) {
    throw error instanceof DOMException && error.name === "AbortError" ? error : new Unreachable(error instanceof Error ? error.message : String(error));
  }
}

/** Sends a question, and returns the answer if it is no error. @param {string} path @param {AbortSignal} signal @param {object} [question] */
async function send(path, signal, question) {
  const headers = { "accept-language": language, ...key ? { authorization: `Bearer ${key}` } : {}, ...question ? { "content-type": "application/json" } : {} };
  const answer = await reached(fetch(`v1/${path}`, { ...question ? { method: "POST", body: JSON.stringify(question) } : {}, headers, signal }));
  if (answer.ok) return answer;
  /** @type {{ error?: string }} */
  const { error } = await answer.json().catch(() => ({}));
  throw error ? failure(error, answer.status, Number(answer.headers.get("retry-after"))) : new Unreachable(`${answer.status} ${answer.statusText}`); // a proxy's own page
}

/** @param {string} sentence @param {number} status of HTTP @param {number} [seconds] after which to ask again */
function failure(sentence, status, seconds) {
  if (status === 429 || status === 503) return new Busy(sentence, seconds || SECONDS_TO_RETRY);
  return [400, 413, 422].includes(status) ? new Refused(sentence) : new Error(sentence);
}

/** @param {string} path @param {AbortSignal} signal @param {object} [question] */
async function answered(path, signal, question) {
  const answer = await send(path, signal, question);
  return reached(answer.json());
}

/**
 * Reads server-sent events: `tell` receives those before `done` or `error`.
 * @param {string} path @param {AbortSignal} signal @param {object} question @param {(content: any) => void} tell
 */
async function streamed(path, signal, question, tell) {
  const { body } = await send(path, signal, question);
  const reader = /** @type {ReadableStream<any>} */ (body).pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { value, done } = await reached(reader.read());
    if (done) throw new Unreachable("the stream ended early");
    const blocks = (waiting + value).split("\n\n");
    waiting = blocks.pop() ?? "";
    for (const block of blocks) {
      const [name, data] = block.split("\n").map((line) => line.slice(line.indexOf(": ") + 2));
      const content = JSON.parse(data);
      if (name === "error") throw failure(content.error, content.status, content.retry_after);
      if (name === "done") return content;
      tell(content);
    }
  }
}

/** @type {import("./interface.js").Engine} */
export const http = {
  runs: (signal) => answered("runs", signal),
  describe: (run, signal) => answered(`runs/${encodeURIComponent(run)}`, signal),
  examples: (run, signal) => answered(`examples?run=${encodeURIComponent(run)}`, signal),
  translate: (question, signal, tell) => streamed("translate/stream", signal, question, tell),
  line: async (question, signal) => (await answered("translate", signal, question)).translations[0]?.text ?? "",
  attend: (question, signal) => answered("attend", signal, question),
  intervene: (question, signal) => answered("intervene", signal, question),
  alternatives: (question, signal) => answered("alternatives", signal, question),
  explain: (question, signal) => answered("explain", signal, question),
  attribute: (question, signal, tell) => streamed("attribute/stream", signal, question, ({ percent }) => tell(percent)),
  align: (question, signal) => answered("align", signal, question),
  qrCode: (text) => `qr.svg?${new URLSearchParams({ text, ...key ? { api_key: key } : {} })}`,
};
