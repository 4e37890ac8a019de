// Runs the page's program in Node.js: node driver.mjs PROGRAM RUNS QUESTIONS prints the answers to the questions as JSON.
// In a browser, the page sends the worker its messages; here, this script does.

import { readFileSync } from "node:fs";
const [program, file, questions] = process.argv.slice(2);
const waiting = new Map();
globalThis.postMessage = (data) => { if (!data.step) waiting.get(data.id)(data); };
(0, eval)(readFileSync(program, "utf8"));
const asked = (id, content) => new Promise((resolve) => {
  waiting.set(id, resolve);
  globalThis.onmessage({ data: { id, ...content } });
});
await asked(0, { file: new Uint8Array(readFileSync(file)).buffer });
const answers = [];
for (const [method, question] of JSON.parse(readFileSync(questions, "utf8"))) {
  const { answer, error } = await asked(answers.length + 1, { method, question });
  if (error !== undefined) throw new Error(error);
  answers.push(answer);
}
process.stdout.write(JSON.stringify(answers), () => process.exit(0));
