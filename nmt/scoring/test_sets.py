"""What is scored: a split of a run's corpus, or the user's own files."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from nmt.config.messages import unknown
from nmt.data.corpus import Pairs, corpus_hashes, file_pair, read_parallel
from nmt.data.documents import check_documents, read_documents
from nmt.errors import MissingFile, Mistake
from nmt.evaluation.sanity import looks_tokenized
from nmt.maps.map_files import MANIFEST, MapFolder, map_folders
from nmt.maps.words import text_of
from nmt.paths import check_folder, check_writable, existing_file
from nmt.runs.included import included_name
from nmt.runs.load import LoadedRun, documents_to_read
from nmt.runs.reading import StoredRun
from nmt.scoring.alignment_error import Gold, gold_file, read_gold, read_valid_gold
from nmt.scoring.references import is_tokenized, read_references, warn_of_references
from nmt.text import normalize
from nmt.text.lines import read_lines
from nmt.text.tone_marks import tone_marks_of

logger = logging.getLogger(__name__)

_EXAMPLES, _MOST_EXAMPLE_WORDS = 6, 16

SENTENCES = "sentences.jsonl"
"""The file of an evaluation with the source, the translation and the references of each line."""


@dataclass(frozen=True)
class TestSet:
    """What is scored: normalized sources, unchanged references, and gold alignments if there are any."""

    __test__ = False  # pytest would otherwise collect this class because of its name

    sources: list[str]
    references: list[list[str]]
    """One or more lists, each with a reference for every source."""
    gold: Gold | None
    valid_gold: Gold | None
    """The validation split with its alignments, which is used to choose the row, layer and head."""
    out: Path
    """The folder for translations and scores."""
    tokenized: bool
    """Whether the references are tokenized already, so that BLEU is computed on their own tokens."""
    documents: list[int] | None = None
    """The document number of each line, if the run reads context and the document boundaries are known."""
    stored: bool = False
    """Whether it was read from the run directory, because the files of the split are gone."""
    origin: Mapping[str, Any] = field(default_factory=dict)
    """The split (None for the user's own files), the source file and the reference files, for the record."""

    def __post_init__(self) -> None:
        for lines in self.references:
            if len(lines) != len(self.sources):
                raise Mistake(
                    f"{len(self.sources)} sources but {len(lines)} references; each source needs one reference."
                )

    def subset(self, indices: Sequence[int]) -> "TestSet":
        """Some of its sentences, without gold alignments."""
        return replace(
            self,
            sources=[self.sources[i] for i in indices],
            references=[[lines[i] for i in indices] for lines in self.references],
            gold=None,
            valid_gold=None,
            documents=self.documents and [self.documents[i] for i in indices],
        )


def chosen_test_set(
    run: LoadedRun,
    split: str,
    source: str | None = None,
    reference: list[str] | None = None,
    alignment: str | None = None,
    out: str | None = None,
    documents: str | None = None,
) -> TestSet:
    """The user's own files if a source is given, else a split of the run's corpus.

    `documents` is a file that says which document each line of the user's source belongs to.

    Raises Mistake if `out` is not writable, and whatever `split_test_set`, `own_test_set` and `documents_to_read`
    raise.
    """
    if source is None:
        chosen = split_test_set(run, split, out, " For your own files, use source=FILE reference=FILE.")
    else:
        chosen = own_test_set(run, source, reference or [], alignment, out)
        chosen = replace(chosen, documents=documents_to_read(run, documents, len(chosen.sources)))
    check_writable("out", chosen.out)
    return chosen


def split_test_set(run: LoadedRun, name: str, out: str | None = None, remedy: str = "") -> TestSet:
    """A split of the run's corpus, or its copy in the run directory if the corpus is gone.

    Raises Mistake for an unknown split, and MissingFile for one that is gone and has not been evaluated; `remedy` is
    appended to the message.
    """
    known = run.settings.data.held_out
    if name not in known:
        raise Mistake(unknown("split", name, known) + remedy)
    data = run.settings.data
    source_file, target_file = file_pair(known[name], run.direction)
    origin = {"split": name, "source": str(source_file), "references": [str(target_file)]}
    folder = Path(out) if out else run.directory.results / "evaluation" / name
    try:
        pairs = read_references(
            known[name],
            run.direction,
            data.becomes_plain(known[name]),
            tone_marks_of(run.direction.target, run.settings.tokenizer.tone_marks),
        )
    except MissingFile as error:
        stored = run.directory.results / "evaluation" / name / SENTENCES
        if not stored.is_file():
            if (included := included_name(run.directory.path)) is not None:
                remedy = f" {included} is distributed without its test sets; models/README.md lists them.{remedy}"
            raise MissingFile(f"{error}{remedy}") from error
        logger.warning(
            "The files of split %s (%s) are missing: using the sources and references in %s, which have no gold "
            "alignments.",
            name,
            known[name],
            stored,
        )
        return replace(_stored_test_set(run, stored, folder), origin=origin)
    _warn_of_changed_files(run, known[name])
    gold = gold_file(run, known[name])
    test_set = _test_set(run, pairs, [pairs.target], gold, folder, is_tokenized(data.tokenized, pairs.target))
    test_set = replace(test_set, origin=origin)
    if not run.context_window.sentences:
        return test_set
    if not check_documents(known[name], run.direction):
        logger.warning("%s has no document boundaries (PREFIX.doc): each line is read by itself.", known[name])
    return replace(test_set, documents=read_documents(known[name], run.direction))


class StoredLine(BaseModel):
    """A line of an evaluation, as sentences.jsonl has it."""

    source: str
    references: Annotated[list[str], Field(min_length=1)]
    document: int | None = None


def _stored_lines(file: Path) -> list[StoredLine]:
    """The lines of an evaluation. Raises Mistake if the file is damaged."""
    try:
        lines = [StoredLine.model_validate_json(line) for line in read_lines(file)]
    except ValidationError as error:
        raise Mistake(
            f"{file} is damaged: copy it from the original run, or copy the corpus of the run here."
        ) from error
    if len({len(line.references) for line in lines}) != 1:
        raise Mistake(f"{file} must have the same number of references on each line: copy it from the original run.")
    return lines


def _stored_test_set(run: LoadedRun, file: Path, out: Path) -> TestSet:
    lines = _stored_lines(file)
    references = [list(texts) for texts in zip(*(line.references for line in lines), strict=True)]
    documents = [line.document for line in lines if line.document is not None]
    return TestSet(
        sources=[line.source for line in lines],
        references=references,
        gold=None,
        valid_gold=None,
        out=out,
        tokenized=is_tokenized(run.settings.data.tokenized, references[0]),
        documents=documents if run.context_window.sentences and len(documents) == len(lines) else None,
        stored=True,
    )


def stored_pairs(run: StoredRun) -> tuple[Path, Pairs] | None:
    """The sentence pairs of an evaluation or a probe in the run directory, and their file; None if there are none."""
    own_files = sorted((run.directory.results / "evaluation" / "files").glob(f"*/{SENTENCES}"))
    return _first_pairs(run, [*_evaluations(run), *own_files])


def example_pairs(run: LoadedRun) -> list[tuple[str, str]]:
    """Short pairs of a source and its translation that the run directory stores, to try the run on.

    They are shown to every visitor, so they never come from files that the user scored. Empty for a run of the embedded
    corpus, whose own pairs are better examples.
    """
    stored = None if run.settings.data.embedded else _first_pairs(run.stored, _evaluations(run.stored))
    pairs = [] if stored is None else zip(*stored[1], strict=True)
    short = (pair for pair in pairs if all(0 < len(side.split()) <= _MOST_EXAMPLE_WORDS for side in pair))
    return list(islice(short, _EXAMPLES))


def _first_pairs(run: StoredRun, evaluations: Iterable[Path]) -> tuple[Path, Pairs] | None:
    """The pairs of the first of these evaluations, or else those of the run's last probe."""
    for file in evaluations:
        lines = _stored_lines(file)
        return file, Pairs([line.source for line in lines], [line.references[0] for line in lines])
    for folder in reversed(map_folders(run.directory.path / "probes")):
        if (folder / MANIFEST).is_file():
            sentences = MapFolder(folder).manifest["sentences"]
            sides = [[text_of(entry[key]) for entry in sentences] for key in ("source_pieces", "target_pieces")]
            return folder / MANIFEST, Pairs(*sides)
    return None


def _evaluations(run: StoredRun) -> list[Path]:
    """The stored evaluations of the run's splits, in their order; for an included model, the examples it comes with."""
    evaluation = run.directory.path / "evaluation"
    if included_name(run.directory.path) is not None:
        return sorted((evaluation / "files").glob(f"*/{SENTENCES}"))
    return [file for name in run.settings.data.held_out if (file := evaluation / name / SENTENCES).is_file()]


def _warn_of_changed_files(run: LoadedRun, prefix: str) -> None:
    recorded = run.directory.metrics().get("corpora", {})
    for file, digest in corpus_hashes([prefix], run.direction).items():
        if recorded.get(file, digest) != digest:
            logger.warning(
                "%s has changed since %s was trained: these scores are not comparable with the earlier ones.",
                file,
                run.directory.path,
            )


def own_test_set(
    run: LoadedRun, source: str, reference: list[str], alignment: str | None = None, out: str | None = None
) -> TestSet:
    """The user's own files: a source, one or more references, and a gold alignment if there is one."""
    source_file = existing_file("source", source)
    references = []
    for name in reference:
        file = existing_file("reference", name)
        lines, translations = read_parallel(source_file, file)
        warn_of_references(file, translations, tone_marks_of(run.direction.target, run.settings.tokenizer.tone_marks))
        references.append(translations)
    pairs = Pairs([normalize(line) for line in lines], references[0])
    gold = existing_file("alignment", alignment) if alignment else None
    folder = Path(out) if out else run.directory.results / "evaluation" / "files" / source_file.stem
    test_set = _test_set(run, pairs, references, gold, folder, looks_tokenized(references[0]))
    return replace(test_set, origin={"split": None, "source": source, "references": reference})


def _test_set(
    run: LoadedRun, pairs: Pairs, references: list[list[str]], gold_file: Path | None, out: Path, tokenized: bool
) -> TestSet:
    check_folder("out", out)
    gold = read_gold(gold_file, pairs, run.direction) if gold_file else None
    return TestSet(pairs.source, references, gold, read_valid_gold(run) if gold else None, out, tokenized)
