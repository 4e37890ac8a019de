"""An Argos package has what Argos Translate 1.11 reads, and the engines that Argos uses find the run's translations."""

import itertools
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import onnxruntime
import pytest
import sentencepiece

from nmt.attention.scorers import Additive
from nmt.errors import Mistake
from nmt.exports.argos import unpacked_model, write_argos
from nmt.exports.sentence_splitter import ABBREVIATIONS, sentence_splitter
from nmt.runs.load import LoadedRun, load_run
from nmt.runs.search import build_translator
from nmt.text import Tokenizer, TokenizerPair, train_tokenizer

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "sample"
ROOT = "translate-en_vi-1_0"

Split = Callable[[str], list[str]]


@pytest.fixture
def trained(run: Path) -> LoadedRun:
    return load_run(run, "cpu")


@pytest.fixture
def package(trained: LoadedRun, tmp_path: Path) -> Path:
    """The package of the run that has learned, unpacked as Argos does it."""
    folder = tmp_path / "out"
    folder.mkdir()
    file = write_argos(trained, folder, "float32")
    assert [path.name for path in folder.iterdir()] == [file.name] == ["translate-en_vi.argosmodel"]
    with zipfile.ZipFile(file) as archive:
        archive.extractall(tmp_path / "packages")
    assert [path.name for path in (tmp_path / "packages").iterdir()] == [ROOT]
    return tmp_path / "packages" / ROOT


def as_argos_decodes(tokenizer: sentencepiece.SentencePieceProcessor, pieces: list[str]) -> str:
    """SentencePieceTokenizer.decode and the end of apply_packaged_translation in argostranslate 1.11."""
    text = tokenizer.decode_pieces(pieces).replace("▁", " ").replace("_", " ")
    return text[1:] if text.startswith(" ") else text


def test_the_engines_of_argos_find_the_runs_translations(trained: LoadedRun, package: Path) -> None:
    """Without beam: that of Argos has a length penalty of its own."""
    lines = Path("valid.en").read_text(encoding="utf-8").splitlines()
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(package / "sentencepiece.model"))
    translator = ctranslate2.Translator(str(package / "model"), device="cpu")
    found = translator.translate_batch(
        [tokenizer.encode(line, out_type=str) for line in lines],
        beam_size=1,
        num_hypotheses=1,
        replace_unknowns=True,
        max_batch_size=32,
        batch_type="tokens",
    )
    texts = [as_argos_decodes(tokenizer, each.hypotheses[0]) for each in found]
    assert texts == build_translator([trained], {"beam_size": 1}).translate(lines)


def test_the_package_says_what_it_is(package: Path) -> None:
    files = sorted(str(path.relative_to(package)) for path in package.rglob("*") if path.is_file())
    assert files == [
        "README.md",
        "metadata.json",
        "minisbd/en.onnx",
        "model/config.json",
        "model/model.bin",
        "model/shared_vocabulary.json",
        "sentencepiece.model",
    ]
    assert json.loads((package / "metadata.json").read_text(encoding="utf-8")) == {
        "type": "translate",
        "package_version": "1.0",
        "argos_version": "1.11",
        "from_code": "en",
        "from_name": "English",
        "to_code": "vi",
        "to_name": "Vietnamese",
        "links": [],
    }
    readme = (package / "README.md").read_text(encoding="utf-8")
    use, reading = 'install_from_path("translate-en_vi.argosmodel")', "The exported model reads every line as it is."
    for part in (use, "python -m nmt.train THE COMMAND", "|Y|^0.2", reading):
        assert part in readme


def test_a_package_in_small_numbers_is_smaller(trained: LoadedRun, package: Path, tmp_path: Path) -> None:
    (tmp_path / "int8").mkdir()
    write_argos(trained, tmp_path / "int8", "int8")
    with unpacked_model(tmp_path / "int8") as model:
        sizes = [(folder / "model.bin").stat().st_size for folder in (model, package / "model")]
    assert sizes[0] < 0.75 * sizes[1]  # vocabulary and position encodings stay as they are
    assert not model.exists()


def test_what_ctranslate2_cannot_hold_is_refused_for_argos(trained: LoadedRun, tmp_path: Path) -> None:
    attention: Any = trained.model.sites["cross"][0]
    attention.scorer = Additive(1, 1, 1)
    with pytest.raises(Mistake, match=r"argos does not support scorer=additive, .* at cross"):
        write_argos(trained, tmp_path, "float32")


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_source_tokenizer_joins_the_pieces_of_another_one(kind: str) -> None:
    """Of the whole test split, so that Argos, which has one tokenizer, decodes separate vocabularies too."""
    train = {side: (SAMPLE / f"train.{side}").read_text(encoding="utf-8").splitlines() for side in ("en", "vi")}
    source, target = (
        Tokenizer(train_tokenizer(text[:2000], kind=kind, size=600, character_coverage=1.0)) for text in train.values()
    )
    assert not TokenizerPair(source, target).joint
    processor = sentencepiece.SentencePieceProcessor(model_proto=source.model)
    hard = ['日本語 😀 q̃ ½ "q" ...', "<s>x</s> <0x41>"]
    for line in [*(SAMPLE / "test.vi").read_text(encoding="utf-8").splitlines(), *hard]:
        assert as_argos_decodes(processor, target.pieces(target.encode(line))) == line


@pytest.fixture(scope="module")
def split() -> Split:
    """MiniSBD's use of a model: its ids of characters and the feature 'capitalized', classes by their largest score."""
    session = onnxruntime.InferenceSession(sentence_splitter("en"), providers=["CPUExecutionProvider"])
    metadata = session.get_modelmeta().custom_metadata_map
    assert json.loads(metadata["config"])["feat_funcs"] == ["capitalized"]
    ids = json.loads(metadata["vocab"])["_unit2id"]
    assert (ids["<PAD>"], ids["<UNK>"]) == (0, 1)

    def sentences(text: str) -> list[str]:
        found = []
        for padding in (1, 7):
            units = np.array([[ids.get(letter, 1) for letter in text] + [0] * padding])
            features = np.array([[letter.isupper() for letter in text] + [False] * padding], dtype=np.float32)
            [scores] = session.run(None, {"units": units, "features": features[:, :, None]})
            ends = [at + 1 for at in np.flatnonzero(scores[0, : len(text)].argmax(axis=1) == 2)]
            borders = [0, *ends] + ([] if ends[-1:] == [len(text)] else [len(text)])
            found.append([text[start:end].strip() for start, end in itertools.pairwise(borders)])
        assert found[0] == found[1]
        return found[0]

    return sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["One sentence without an end"],
        ["How are you?", "I am fine!", "Good…", "Yes."],
        ['"Go." she said.', "(Really!)", "“Đi.”", "Ông ấy nói."],
        ["It costs 3.5 dollars or approx. four.", "Ask J. R. Smith, Mr. Nam or e.g. Dr. Lan."],
        ["Tôi đi. đó là Ông A. Nam.", "Ở TP. Huế."],
        ["Is this it?!", "No.", "It is not."],
        ["www.a.com/b?c=d is a page.", "Ắt là thế."],
    ],
)
def test_sentences_end_where_they_should(sentences: list[str], split: Split) -> None:
    assert split(" ".join(sentences)) == sentences


def test_no_sentence_ends_after_an_abbreviation(split: Split) -> None:
    for abbreviation in ABBREVIATIONS:
        text = f"See {abbreviation} Nam."
        assert split(text) == [text]
        longer = f"See x{abbreviation} Nam."  # another word
        assert split(longer) == [longer.removesuffix(" Nam."), "Nam."]


def test_every_line_of_the_sample_corpus_is_one_sentence(split: Split) -> None:
    for line in (SAMPLE / "test.en").read_text(encoding="utf-8").splitlines()[:200]:
        assert split(line) == [line]
