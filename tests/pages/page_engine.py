"""The page's engine in a browser: the worker of the page that is one file, asked by its messages."""

import base64
from collections.abc import Sequence
from typing import Any

from nmt.exports.page_export import worker_program
from nmt.exports.page_file import PageRun, page_data
from nmt.runs.load import LoadedRun

ASK = """([program, file, questions]) => new Promise((resolve, reject) => {
  const worker = new Worker(URL.createObjectURL(new Blob([program], { type: "text/javascript" })));
  const answers = [];
  worker.onerror = (event) => reject(new Error(event.message));
  worker.onmessage = ({ data }) => {
    if (data.step) return;
    if (data.error !== undefined && data.id === 0) reject(new Error(data.error));
    if (data.id) answers.push(data.error === undefined ? data.answer : { error: data.error });
    if (answers.length < questions.length) return;
    worker.terminate();
    resolve(answers);
  };
  const bytes = Uint8Array.from(atob(file), (character) => character.charCodeAt(0));
  worker.postMessage({ id: 0, file: bytes.buffer }, [bytes.buffer]);
  questions.forEach(([method, question], index) => worker.postMessage({ id: index + 1, method, question }));
})"""


def answers(
    page: Any,
    run: LoadedRun,
    questions: Sequence[tuple[str, dict[str, Any]]],
    quantization: str = "float32",
    webassembly: bool = True,
) -> list[Any]:
    """What the engine answers to questions (method, question) about a run."""
    program = worker_program() if webassembly else f"delete globalThis.WebAssembly;\n{worker_program()}"
    data = base64.b64encode(page_data([PageRun("run", run)], quantization)).decode()
    asked = [[method, {"run": "run", **question}] for method, question in questions]
    result: list[Any] = page.evaluate(ASK, [program, data, asked])
    return result
