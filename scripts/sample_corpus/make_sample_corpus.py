"""Write or check the embedded English-Vietnamese sample corpus, which a synchronous grammar generates (CC0).

python -m scripts.sample_corpus.make_sample_corpus            write data/sample/{train,valid,test,test_new}.*
                                                              and data/sample/documents_*
python -m scripts.sample_corpus.make_sample_corpus --check    generate it again and compare byte by byte
"""

import argparse
import sys
from pathlib import Path

from nmt.text.lines import read_lines

from .checks import check_corpus
from .document_checks import CONTRAST, TRAIN, check_documents
from .documents import Document, make_documents
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
    return {name: as_bytes(lines) for name, lines in contents.items()}


def document_name(split: str, place: int) -> str:
    """The name of a document in PREFIX.doc: train-00017, or contrast-0017a and contrast-0017b for two that contrast."""
    if split == CONTRAST:
        return f"contrast-{place // 2 + 1:04d}{'ab'[place % 2]}"
    return f"{split.removeprefix('documents_')}-{place + 1:05d}"


def document_files(splits: dict[str, list[Document]]) -> dict[str, bytes]:
    """The content of every file of documents, by name."""
    contents: dict[str, list[str]] = {}
    for split, documents in splits.items():
        pairs = [pair for document in documents for pair in document.pairs]
        contents[f"{split}.en"] = [pair.source for pair in pairs]
        contents[f"{split}.vi"] = [pair.target for pair in pairs]
        contents[f"{split}.doc"] = [
            document_name(split, place) for place, document in enumerate(documents) for _ in document.pairs
        ]
        if split != TRAIN:
            contents[f"{split}.en-vi.align"] = [pair.pharaoh for pair in pairs]
        if split == CONTRAST:
            contents[f"{split}.antecedent"] = [str(document.distances[-1]) for document in documents]
    return {name: as_bytes(lines) for name, lines in contents.items()}


def as_bytes(lines: list[str]) -> bytes:
    """The lines as a file."""
    return "".join(line + "\n" for line in lines).encode()


def hand_written(folder: Path) -> list[str]:
    """The sentences of the hand-written phrase lists, which the generated splits must not repeat."""
    paths = sorted(folder.glob("phrases*.??"))
    return [line for path in paths for line in read_lines(path)]


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
    phrases = hand_written(FOLDER)
    corpus = make_corpus(SEED, phrases)
    taken = [*phrases, *(side for pairs in corpus.splits.values() for p in pairs for side in (p.source, p.target))]
    documents = make_documents(SEED, taken)
    contents = files(corpus) | document_files(documents)
    if not options.check:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (FOLDER / name).write_bytes(content)
        print(f"wrote {len(contents)} files to {FOLDER}")
        return 0
    wrong = [*compare(contents, FOLDER), *check_corpus(corpus, FOLDER), *check_documents(documents, taken)]
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
