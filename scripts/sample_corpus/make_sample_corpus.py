"""Write or check the embedded English-Vietnamese sample corpus, which a synchronous grammar generates (CC0).

python -m scripts.sample_corpus.make_sample_corpus            write data/sample/{train,valid,test,test_new}.*
python -m scripts.sample_corpus.make_sample_corpus --check    generate it again and compare byte by byte
"""

import argparse
import sys
from pathlib import Path

from .checks import check_corpus
from .splits import Corpus, make_corpus

FOLDER = Path(__file__).resolve().parents[2] / "data" / "sample"
SEED = 1


def files(corpus: Corpus) -> dict[str, bytes]:
    """The content of every file, by name."""
    contents = {}
    for split, pairs in corpus.splits.items():
        contents[f"{split}.en"] = [pair.source for pair in pairs]
        contents[f"{split}.vi"] = [pair.target for pair in pairs]
        if split != "train":
            contents[f"{split}.en-vi.align"] = [pair.pharaoh for pair in pairs]
    return {name: "".join(line + "\n" for line in lines).encode() for name, lines in contents.items()}


def hand_written(folder: Path) -> list[str]:
    """The sentences of the hand-written phrase lists, which the generated splits must not repeat."""
    paths = sorted(folder.glob("phrases*.??"))
    return [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def compare(contents: dict[str, bytes], folder: Path) -> list[str]:
    """One sentence for each file that is missing or different."""
    wrong = []
    for name, content in contents.items():
        path = folder / name
        if not path.is_file():
            wrong.append(f"{path} is missing; run this script without --check.")
        elif path.read_bytes() != content:
            wrong.append(f"{path} differs from what the grammar generates; run this script without --check.")
    return wrong


def main(arguments: list[str] | None = None) -> int:
    """Write or check the corpus; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare and check the files instead of writing them")
    options = parser.parse_args(arguments)
    corpus = make_corpus(SEED, hand_written(FOLDER))
    contents = files(corpus)
    if not options.check:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (FOLDER / name).write_bytes(content)
        print(f"wrote {len(contents)} files to {FOLDER}")
        return 0
    wrong = [*compare(contents, FOLDER), *check_corpus(corpus, FOLDER)]
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
