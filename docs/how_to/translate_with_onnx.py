"""Translates standard input line by line with a model exported to ONNX; needs neither torch nor nmt.

    pip install numpy onnxruntime sentencepiece
    python translate_with_onnx.py FOLDER < in.en > out.vi

FOLDER is the folder that `python -m nmt.export run_dir=RUN format=onnx out=FOLDER` wrote. The search is the beam search
of nmt.translate with the settings of the run, for one sentence at a time.
"""

import json
import math
import re
import sys
import unicodedata
from pathlib import Path

import numpy as np
import onnxruntime
import sentencepiece


class Translator:
    """The graphs of the encoder and of a decoder step, the tokenizers, and the settings in model.json."""

    def __init__(self, folder: Path) -> None:
        self.about = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        if self.about["search"]["no_repeat_ngram"]:
            sys.exit("This program does not support search.constraints.no_repeat_ngram: export a run without it.")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.encoder, self.decoder = (
            onnxruntime.InferenceSession(folder / self.about[name]["file"], options) for name in ("encoder", "step")
        )
        self.source, self.target = (
            sentencepiece.SentencePieceProcessor(model_file=str(folder / self.about["tokenizers"][side]))
            for side in ("source", "target")
        )

    def translate(self, line: str) -> str:
        """The best translation of a line; an empty line stays empty."""
        pieces = self.source.encode(normalize(line))
        most = self.about["max_source_tokens"] - 1
        if len(pieces) > most:  # nmt.translate translates such a line in parts
            print(f"A line has {len(pieces)} pieces; only the first {most} are translated.", file=sys.stderr)
        found = self.search([*pieces[:most], self.about["special_ids"]["eos"]]) if pieces else []
        return normalize(self.target.decode(found))

    def search(self, source: list[int]) -> list[int]:
        """The ids of the best translation, without EOS, found by beam search (Wu et al. 2016, equation 14)."""
        settings, special = self.about["search"], self.about["special_ids"]
        beams, alpha, beta = settings["beam_size"], settings["length_penalty"], settings["coverage_penalty"]
        longest = self.longest(len(source))

        ids = np.array([source])
        encoded = run(self.encoder, {"source": ids, "source_mask": ids != special["pad"]})
        # One row for the sentence, and one for each of its beams.
        memory = {name: value for name, value in encoded.items() if name.startswith("memory.")}
        state = {name: value.repeat(beams, axis=0) for name, value in encoded.items() if name.startswith("state.")}

        pieces = np.full(beams, special["bos"])
        log_probs = np.full(beams, -np.inf, dtype=np.float32)
        log_probs[0] = 0  # the beams are equal at the start, so only the first counts
        covered = np.zeros((beams, len(source)), dtype=np.float32)
        hypotheses: list[list[int]] = [[] for _ in range(beams)]
        best, translation, finished = -math.inf, list[int](), 0

        for length in range(1, longest + 1):
            result = run(self.decoder, {"tokens": pieces[None], **state, **memory})
            covered = covered + result["cross"][-1, 0].mean(axis=0)  # the last layer, averaged over the heads
            totals = log_probs[:, None] + result["log_probs"][0]
            totals[:, [special["pad"], special["unk"], special["bos"]]] = -np.inf
            if length == longest:
                totals[:, np.arange(totals.shape[1]) != special["eos"]] = -np.inf
            elif length < settings["min_length"]:
                totals[:, special["eos"]] = -np.inf

            going = []
            for rank, (parent, piece) in enumerate(highest(totals, 2 * beams)):
                total = totals[parent, piece]
                if piece != special["eos"]:
                    going.append((parent, piece, total))
                elif rank < beams and total > -math.inf:
                    coverage = np.log(covered[parent, :-1].clip(1e-3, 1)).sum()
                    score = total / ((5 + length) / 6) ** alpha + beta * coverage
                    finished += 1
                    if score > best:
                        best, translation = score, hypotheses[parent]

            parents, pieces, log_probs = (np.array(part) for part in zip(*going[:beams], strict=True))
            # The length at which an unfinished hypothesis could still reach its highest score.
            reach = longest if alpha >= 0 else length + 1
            behind = beams == 1 or log_probs.max() / ((5 + length) / 6) ** alpha <= best
            if (finished >= beams and behind) or best >= log_probs.max() / ((5 + reach) / 6) ** alpha:
                break
            state = {f"state.{name[5:]}": value[parents] for name, value in result.items() if name.startswith("next.")}
            covered = covered[parents]
            hypotheses = [[*hypotheses[parent], int(piece)] for parent, piece in zip(parents, pieces, strict=True)]
        return translation

    def longest(self, source: int) -> int:
        """The maximum length of the translation of a source of `source` pieces; both lengths include EOS."""
        settings = self.about["search"]
        limit = int(source * settings["max_length_ratio"] + settings["max_length_offset"])
        limit = max(min(limit, settings["max_length"] or limit), settings["min_length"])
        return min(limit, self.about["max_target"] or limit)


def run(graph: onnxruntime.InferenceSession, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Runs a graph and returns its outputs by name."""
    names = [output.name for output in graph.get_outputs()]
    return dict(zip(names, graph.run(names, inputs), strict=True))


def highest(totals: np.ndarray, number: int) -> list[tuple[int, int]]:
    """The (row, column) of the `number` highest totals, best first."""
    flat = totals.ravel()
    chosen = np.argpartition(-flat, number)[:number]
    chosen = chosen[np.argsort(-flat[chosen], kind="stable")]
    return [divmod(int(place), totals.shape[1]) for place in chosen]


def normalize(text: str) -> str:
    """NFC with single plain spaces and without invisible characters, nearly as the model saw its training data.

    Remove U+200C and U+200D, too, unless the text is Arabic, Hebrew or Indic, or contains emoji.
    """
    text = re.sub("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]", "", text)
    text = text.replace("\u2581", "_")
    return unicodedata.normalize("NFC", re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", text).strip(" "))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python translate_with_onnx.py FOLDER < in.en > out.vi")
    for stream in (sys.stdin, sys.stdout):
        stream.reconfigure(encoding="utf-8", newline="\n")
    folder = Path(sys.argv[1])
    if not (folder / "model.json").is_file():
        sys.exit(f"{folder} has no model.json: give the folder that nmt.export format=onnx wrote.")
    translator = Translator(folder)
    for line in sys.stdin:
        print(translator.translate(line), flush=True)
