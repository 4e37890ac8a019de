"""Any input is either read or refused with a message.

`make soak` (FUZZ=soak) tries hundreds of times as many inputs.
"""

import codecs
import io
import json
import math
import random
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fuzzing import Workshop, inputs, outcome
from grids import SOAK
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from nmt.cli.compose import configuration
from nmt.config.direction import Direction
from nmt.config.keys import with_values
from nmt.data.corpus import iter_parallel
from nmt.decoding.beam import BeamSearch
from nmt.decoding.binding import bind
from nmt.decoding.constraints import Constraints
from nmt.decoding.translator import Translator
from nmt.errors import Mistake, printable
from nmt.maps.links import read_alignments
from nmt.maps.map_files import MANIFEST, MapFolder
from nmt.runs.directory import RunDirectory
from nmt.runs.load import build_model
from nmt.text import Tokenizer, TokenizerPair, normalize, train_tokenizer
from nmt.text.lines import LONGEST_LINE, bounded_lines, read_lines, text_lines

settings.register_profile("tests", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("soak", max_examples=6000, deadline=None)
settings.load_profile("soak" if SOAK else "tests")

ODD = [
    "",
    "\0",
    "\ufeff",
    "\u200b\u200d\u2060",
    "\u202eabc\u202c \u05d0\u0628",
    "e\u0301" * 50 + "a" + "\u0300" * 500,
    "\u2581 \u2581\u2581",
    "\r\r\n\x0b\x0c\x1c\x85\u2028\u2029",
    "<pad> <s> </s> <unk> <0x41>",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "x" * 100_000,
    " " * 100_000,
]
TEXT: SearchStrategy[str] = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=60),
    st.text("aàảạ ăâđêôơư\u0301\u0323 .\u00a0\u200b\u2581\0\r<>", max_size=60),
    st.sampled_from(ODD),
)
BYTES: SearchStrategy[bytes] = st.one_of(
    st.binary(max_size=200),
    TEXT.map(lambda text: text.encode()),
    TEXT.map(lambda text: text.encode("utf-16")),
    st.text(st.characters(categories=["Cs"]), min_size=1, max_size=5).map(lambda s: s.encode("utf-8", "surrogatepass")),
)
LINES: SearchStrategy[bytes] = st.lists(BYTES, max_size=6).map(b"\n".join)
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


def tried(read: Callable[[], Any]) -> tuple[Any, str]:
    """The result and an empty message, or None and the message of the refusal."""
    try:
        return read(), ""
    except Mistake as error:
        return None, str(error)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    sample = Path(__file__).resolve().parents[1] / "data" / "sample" / "phrases.vi"
    return Tokenizer(train_tokenizer(map(normalize, read_lines(sample)), kind="bpe", size=500, character_coverage=1.0))


@given(TEXT)
def test_normalization_is_idempotent(text: str) -> None:
    once = normalize(text)
    assert normalize(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert "\n" not in once or "\n" in text


@given(TEXT)
@settings(suppress_health_check=SLOW)
def test_decoding_restores_the_encoded_text(tokenizer: Tokenizer, text: str) -> None:
    line = normalize(text)
    ids = tokenizer.encode(line)
    assert tokenizer.decode(ids) == line
    assert all(3 < i < tokenizer.size for i in ids)


@given(BYTES)
@settings(suppress_health_check=SLOW)
def test_any_bytes_are_a_tokenizer_or_refused(content: bytes) -> None:
    with pytest.raises(Mistake, match="SentencePiece model"):
        Tokenizer(content)


@given(LINES)
@settings(suppress_health_check=SLOW)
def test_any_file_is_lines_or_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.en"
    file.write_bytes(content)
    lines, refused = tried(lambda: read_lines(file))
    if lines is None:
        assert str(file) in refused
        return
    assert len(lines) == content.count(b"\n") + (not content.endswith(b"\n"))  # a mark alone is an empty file
    assert "\n".join(lines).replace("\r", "") == content.decode("utf-8-sig").removesuffix("\n").replace("\r", "")


@given(LINES, LINES)
@settings(suppress_health_check=SLOW)
def test_any_two_files_are_pairs_or_refused(tmp_path: Path, source: bytes, target: bytes) -> None:
    files = [tmp_path / "a.en", tmp_path / "a.vi"]
    for file, content in zip(files, (source, target), strict=True):
        file.write_bytes(content)
    pairs, refused = tried(lambda: list(iter_parallel(*files)))
    if pairs is None:
        assert any(str(file) in refused for file in files)
        return
    assert pairs == list(zip(read_lines(files[0]), read_lines(files[1]), strict=True))


@given(st.integers(-4, 4), st.sampled_from("aàạ\U0001f469"), st.sampled_from([b"", b"\n", b"\nnext", b"\r\n"]))
@settings(suppress_health_check=SLOW)
def test_a_huge_line_is_cut_between_two_characters(more: int, letter: str, end: bytes) -> None:
    line = (letter * (LONGEST_LINE // len(letter.encode()) + more)).encode() + b"z" * (more % 3)
    (kept, skipped), *others = bounded_lines(io.BytesIO(line + end))
    assert len(line) - 1 <= len(kept) + skipped <= len(line) + 1
    assert LONGEST_LINE - 4 < len(kept) <= LONGEST_LINE or not skipped
    assert line.startswith(kept)
    kept.decode()
    assert others == ([(b"next", 0)] if end == b"\nnext" else [])


@given(LINES)
@settings(suppress_health_check=SLOW)
def test_any_input_is_lines_or_refused(content: bytes) -> None:
    found, refused = tried(lambda: list(text_lines(io.BytesIO(content), "F")))
    if found is None:
        assert "not UTF-8" in refused
        return
    content = content.removeprefix(codecs.BOM_UTF8)
    assert len(found) == content.count(b"\n") + bool(content and not content.endswith(b"\n"))


@pytest.fixture(scope="module")
def translator(tokenizer: Tokenizer) -> Translator:
    pair, tiny = TokenizerPair(tokenizer, tokenizer), ["model=luong", "model.embedding_dim=5"]
    sizes = ["model.encoder_dim=6", "model.decoder_dim=7", "model.num_layers=1"]
    model = build_model(configuration("train", ["run_dir=none", *tiny, *sizes])["model"], pair)
    return Translator(bind(BeamSearch(beam_size=2, constraints=Constraints(max_length=2)), model), pair)


@given(st.lists(TEXT, max_size=4))
@settings(suppress_health_check=SLOW)
def test_any_line_is_translated_unless_it_is_empty(
    translator: Translator, tokenizer: Tokenizer, lines: list[str]
) -> None:
    ranked = [line.translations for line in translator.stream((line, "") for line in lines)]
    assert [len(texts) for texts in ranked] == [int(bool(tokenizer.encode(normalize(line)))) for line in lines]
    assert not any("\n" in translation.text for texts in ranked for translation in texts)


LINKS: SearchStrategy[str] = st.text("0123456789-? \t,abc−٣", max_size=30)


@given(st.lists(st.one_of(LINKS, TEXT), max_size=4))
@example(["0-0 1?1", "", "99999999999999999999-1"])
@settings(suppress_health_check=SLOW)
def test_any_alignments_are_links_or_refused(tmp_path: Path, lines: list[str]) -> None:
    file = tmp_path / "a.align"
    file.write_bytes("\n".join(line.replace("\n", " ") for line in lines).encode())
    alignments, refused = tried(lambda: read_alignments(file))
    if alignments is None:
        assert str(file) in refused
        return
    assert all(min(link) >= 0 for alignment in alignments for link in alignment.possible)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["format", "version", "made_from", "lines", "sites", "sentences", "file", "finished", "a"]),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(st.one_of(JSON.map(lambda value: json.dumps(value).encode()), BYTES))
@settings(suppress_health_check=SLOW)
def test_any_manifest_and_any_record_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MANIFEST).write_bytes(content)
    (tmp_path / "metrics.json").write_bytes(content)
    (tmp_path / "config.yaml").write_bytes(content)
    with pytest.raises(Mistake, match=r"damaged|not a manifest"):
        MapFolder(tmp_path)
    run = RunDirectory(tmp_path)
    with pytest.raises(Mistake, match=r"config\.yaml"):
        run.config()
    metrics, refused = tried(run.metrics)
    assert "metrics.json" in refused or isinstance(metrics["finished"], bool)


@given(st.text(max_size=12))
def test_any_direction_is_two_languages_or_refused(text: str) -> None:
    direction, refused = tried(lambda: Direction.parse(text))
    assert str(direction) == text or printable(text) in refused


KEYS = st.sampled_from(["read_ahead", "search.beam_size", "search", "format", "+a", "~device", "batch_tokens", "x", ""])
VALUES = st.one_of(
    st.sampled_from(["1", "-1", "null", "[1,2", "{a:1}", "${device}", "'", '"', "a=b", "é", "1e999", "beam", ""]),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8),
)


@given(KEYS, VALUES)
@settings(suppress_health_check=SLOW)
def test_any_override_is_a_configuration_or_refused(key: str, value: str) -> None:
    config, refused = tried(lambda: configuration("translate", ["run_dir=none", f"{key}={value}"]))
    assert refused or config["run_dir"] == "none"


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    workshop = Workshop(tmp_path_factory.mktemp("fuzz"))
    yield workshop
    workshop.close()


# How many inputs of a target are tried: a hundred times as many in make soak, and at most so many in make test.
INPUTS, MOST_IN_A_TEST = 150, 30
# Building a model, or searching, for every input takes long.
SLOW_TARGETS = {
    "config.yaml": 10,
    "settings": 10,
    "search": 30,
    "scores.json": 20,
    "requests": 60,
    "model.safetensors": 60,
}
TARGETS = [
    *("config.yaml", "settings", "search", "metrics.json", "scores.json", "export.json", "model.safetensors"),
    *("tokenizer.model", "manifest.json"),
    *("maps.npz", "sentences.jsonl", "alignments", "documents", "dictionary.tsv", "prefixes"),
    *("zip", "tar", "tar.gz", "HTML", "requests"),
]


def test_every_target_is_tried(workshop: Workshop) -> None:
    assert list(workshop.targets) == TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_what_a_stranger_made_is_read_or_refused_in_our_words(workshop: Workshop, name: str) -> None:
    """tests/soak/fuzz.py tries as many inputs as wanted."""
    target = workshop.targets[name]
    number = SLOW_TARGETS.get(name, INPUTS)
    for data in inputs(name, target, max(5000, 100 * number) if SOAK else min(MOST_IN_A_TEST, number)):
        kind, message = outcome(target, data)
        assert kind in ("value", "Mistake", "CheckFailed"), (message, data[:1000])
    assert outcome(target, target.seeds[0])[0] == "value"


def test_every_stored_value_may_be_of_any_type(workshop: Workshop) -> None:
    """Each value of a configuration is replaced by null and by values of other simple types, one at a time."""
    wrong = [None, True, 0, -1, 7, 0.5, "x", "", [], {}, [None], ["a"], {"a": None}, math.nan, math.inf, 2**62, 1e308]
    target = workshop.targets["settings"]
    configs = [yaml.safe_load(text) for text in workshop.configurations()]
    changes = [(config, key, value) for config in configs for key in keys_of(config) for value in wrong]
    for config, key, value in changes if SOAK else random.Random(1).sample(changes, 40):
        data = yaml.safe_dump(with_values(config, {key: value})).encode()
        kind, message = outcome(target, data)
        assert kind in ("value", "Mistake", "CheckFailed"), (key, value, message)


def keys_of(group: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """The dotted keys of all groups and values."""
    for name, value in group.items():
        yield f"{prefix}{name}"
        if isinstance(value, dict):
            yield from keys_of(value, f"{prefix}{name}.")
