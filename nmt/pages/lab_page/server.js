// Questions to the server. A new question aborts an earlier one of the same kind; the kind is the path unless one is given.

import { label } from "/page/text.js";

const underWay = new Map();
const key = new URLSearchParams(location.search).get("api_key");
const access = key ? { authorization: `Bearer ${key}` } : {};

export class Unreachable extends Error {}

async function reached(promise) {
  try { return await promise; } catch (error) { throw error.name === "AbortError" ? error : new Unreachable(error.message); }
}

export async function ask(path, body, kind = path) {
  underWay.get(kind)?.abort();
  const controller = new AbortController();
  underWay.set(kind, controller);
  const post = body && { method: "POST", body: JSON.stringify(body) };
  const headers = { ...access, ...body ? { "content-type": "application/json" } : {} };
  const answer = await reached(fetch(path, { ...post, headers, signal: controller.signal }));
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}

// Asks for a stream of events: `tell` is called with each {beams, text, map}, and the result is the content of `done`.
export async function listen(path, body, tell) {
  underWay.get(path)?.abort();
  const controller = new AbortController();
  underWay.set(path, controller);
  const headers = { ...access, "content-type": "application/json" };
  const answer = await reached(fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal: controller.signal }));
  if (!answer.ok) throw new Error((await answer.json()).error);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Unreachable("the stream ended early");
    const blocks = (waiting + value).split("\n\n");
    waiting = blocks.pop();
    for (const block of blocks) {
      const [name, data] = block.split("\n").map((line) => line.slice(line.indexOf(": ") + 2));
      const content = JSON.parse(data);
      if (name === "error") throw new Error(content.error);
      if (name === "done") return content;
      tell(content);
    }
  }
}

// Aborts the pending question of a kind; the server then stops computing it.
export function stop(kind) {
  underWay.get(kind)?.abort();
  underWay.delete(kind);
}

export const isOutdated = (error) => error.name === "AbortError";

// The text that the page shows for a failed question.
export const sentenceOf = (error) => error instanceof Unreachable ? label("failed", error.message) : error.message;
