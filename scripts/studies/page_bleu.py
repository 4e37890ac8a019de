"""What 8 bits cost the page that is one file: BLEU of its translations in float32 and int8, beside the run's.

  python -m scripts.studies.page_bleu runs/demo sample:test
  python -m scripts.studies.page_bleu en-vi data/flores/flores_dev --lines 200

Node.js runs the page's program. "Equal" counts the translations that are the run's own, without a coverage penalty; the
differences are between the two log-probabilities of each reference piece, in nats.
"""

import argparse
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from nmt.data.corpus import corpus_files
from nmt.errors import Mistake
from nmt.evaluation.scores import corpus_scores, headline_metrics
from nmt.exports.page_export import OLDEST_NODE, QUANTIZATIONS, in_node, usable_node
from nmt.exports.page_file import PageRun, page_data
from nmt.exports.parity import compare, comparison_search
from nmt.runs.load import load_run
from nmt.runs.search import build_translator
from nmt.tables import Cell, Table
from nmt.text import normalize
from nmt.text.lines import iter_lines
from scripts.mistakes import report_mistakes


def bleu(translations: Sequence[str], references: Sequence[str]) -> str:
    [score] = corpus_scores(translations, [references], {"BLEU": headline_metrics(tokenized=False)["BLEU"]})
    return score.figures()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="a finished run, or the name of an included one")
    parser.add_argument("corpus", help="a prefix of two aligned files, such as data/sample/test")
    parser.add_argument("--lines", type=int, default=None, help="number of pairs, from the first (default: all)")
    given = parser.parse_args(arguments)
    node = usable_node()
    if node is None:
        raise Mistake(f"This study needs Node.js {OLDEST_NODE} or newer to run the page's program: install it.")
    run = load_run(Path(given.run), "cpu")
    sources, references = (
        [*islice(iter_lines(path), given.lines)] for path in corpus_files(given.corpus, run.direction)
    )
    own = build_translator([run], comparison_search(run), verbatim=True).translate([normalize(one) for one in sources])
    rows: list[list[Cell]] = [["run", "-", bleu(own, references), "-", "-"]]
    for quantization in QUANTIZATIONS:
        data = page_data([PageRun("run", run)], quantization)
        page = in_node(PageRun("run", run), node, data)
        translations = page.translate(sources)
        parity = compare(run, page._replace(translate=lambda lines: [""] * len(lines)), sources, references)
        equal = sum(a == b for a, b in zip(own, translations, strict=True))
        rows.append(
            [
                f"page, {quantization}",
                f"{len(data) / 1e6:.2f}",
                bleu(translations, references),
                f"{equal} of {len(sources)}",
                f"{parity.largest_difference:.1e}, {parity.mean_difference:.1e}",
            ]
        )
    print(Table(["", "MB", "BLEU", "equal", "largest and mean difference"], rows).markdown())


if __name__ == "__main__":
    report_mistakes(main)
