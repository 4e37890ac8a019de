"""Fuzz targets: one per parser of something that a stranger may have made.

The law: any input gives a value, or a Mistake or a CheckFailed in one printable sentence that is ours, and never
another exception. tests/test_fuzz.py tries a few inputs of each target, tests/soak/fuzz.py as many as wanted.
"""

import asyncio
import copy
import gzip
import hashlib
import io
import json
import math
import random
import re
import shutil
import struct
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import yaml
from safetensors import SafetensorError
from safetensors.torch import save_model

from nmt.cli.compose import configuration
from nmt.commands.translate import _with_prefixes
from nmt.config.direction import Direction
from nmt.config.nodes import make
from nmt.config.schema import RunSettings, validated
from nmt.config.trusted import check_nodes
from nmt.data.archives import extract
from nmt.data.documents import documents_of_file
from nmt.decoding.binding import bind
from nmt.decoding.translator import Translator
from nmt.errors import CheckFailed, Mistake
from nmt.evaluation.scores import all_metrics, corpus_scores
from nmt.exports.export_record import RECORD, file_digests, origin
from nmt.exports.export_run import check_replaceable, open_kept
from nmt.maps.links import check_links, rates, read_alignments
from nmt.maps.map_files import MANIFEST, MapFolder
from nmt.runs.directory import RunDirectory, tokenizer_hashes
from nmt.runs.engine import named_search, search_config
from nmt.runs.load import LoadedRun, build_model
from nmt.runs.weights import header_matches, load_weights
from nmt.scoring.run_scores import HYPOTHESES, SCORES, conditions, stored_scores
from nmt.scoring.score_table import System, scored_on_tokens, system_section
from nmt.scoring.test_sets import TestSet, _stored_lines
from nmt.serving.application import application
from nmt.serving.batcher import Batcher
from nmt.serving.gallery import Gallery
from nmt.serving.service import Access, Limits, Service
from nmt.serving.texts import translated_html
from nmt.text import Tokenizer, TokenizerPair, normalize, train_tokenizer
from nmt.text.dictionary import Dictionary
from nmt.text.lines import read_lines
from nmt.training.machine import choose_machine
from nmt.training.origin import changed_command
from nmt.training.translation import Translation

SAMPLE = Path(__file__).resolve().parents[1] / "data" / "sample"
TINY = [
    "experiment=none",
    "model=transformer",
    "model.dim=4",
    "model.ffn_dim=5",
    "model.num_heads=2",
    "model.num_layers=1",
    "trainer.accelerator=cpu",
    "search.beam_size=2",
    "run_dir=none",
]
_SMALL = ["experiment=none", "trainer.accelerator=cpu", "trainer.max_steps=1000", "run_dir=none"]
_SMALL_RECURRENT = ["model.embedding_dim=4", "model.encoder_dim=4", "model.decoder_dim=4"]
OTHERS = [
    [*TINY, "context=hierarchical", "schedule=noam", "initializer=small", "optimizer=sgd", "norm@model=scale_norm"],
    [
        *(*_SMALL, "model=luong", *_SMALL_RECURRENT, "encoder@model=lstmn", "decoder@model=lstmn", "window=local_p"),
        *("schedule=late_halving", "search=sampling", "objective=simcut", "initializer=uniform", "optimizer=adadelta"),
    ],
    [
        *(*_SMALL, "model=bahdanau", *_SMALL_RECURRENT, "model.maxout_dim=4", "window=local_m", "scorer=location"),
        *("schedule=plateau", "objective=r_drop", "initializer=xavier", "optimizer=adam", "logger=csv"),
    ],
]
"""Runs with other choices of each group."""
NOT_STORED = ("run_dir", "sweep_dir", "resume", "overwrite", "cache_dir")

# What Python, numpy, torch and other libraries say about a value that they did not expect.
WORDS = re.compile(
    r"object has no attribute|not subscriptable|object is not|not iterable|unsupported operand|unhashable|"
    r"invalid literal for|codec can't|NoneType|expected str|must be str|must be real number|list indices|"
    r"out of range\b.*index|index out of range|Exceeds the limit|embedded null|values to unpack|positional argument|"
    r"unexpected keyword|missing \d+ required|cannot convert|could not convert|not supported between|"
    r"Traceback|<class '|<function|Errno|Error:|Expecting value|Extra data|\bdtype\b|Overflow"
)

_HUGE = "@huge@"
HOSTILE: list[Any] = [
    *(None, True, False, 0, -1, 1, 3, 64, 2**31, 2**63 - 1, 2**63, -(2**63), 10**30, _HUGE),
    *(0.5, -0.0, 1e-308, 1e308, -1e308, math.nan, math.inf, -math.inf),
    *("", " ", "x", "\0", "\n", "\x1b[2J", "\u202eabc", "\ud800", "é" * 300, "x" * 5000, "9" * 5000),
    *(
        "../../etc/passwd",
        "/etc/passwd",
        "it's",
        "${oc.env:HOME}",
        "<img src=x onerror=alert(1)>",
        "???",
        "nan",
        "null",
    ),
    *("os.system", "nmt.decoding.workers._exit_with_parent", "nmt.models.Luong", "nmt.attention.Attention"),
    *([], [[]], [1], ["a"], [None], {}, {"a": 1}, {"_target_": "os.getcwd"}, {"_target_": 5}),
    *({"_target_": "nmt.decoding.beam.BeamSearch"}, {"_target_": "nmt.models.norms.ScaleNorm", "_partial_": True}),
]
TOKENS = [
    *(b"", b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\n", b"\r\n", b"\t", b" ", b"-", b"?", b"#", b"%", b"\\", b"'"),
    *(b'"', b"[", b"]", b"{", b"}", b":", b",", b"&a ", b"*a", b"<<: *a", b"!!int ", b"!!binary ", b"!!python/none ''"),
    *(b"null", b"true", b"NaN", b"Infinity", b"-1", b"0", b"1e999", b"9" * 40, b"9" * 5000, b"0x" + b"f" * 20),
    *(b"<", b">", b"<!--", b"-->", b"<![", b"]]>", b"<![CDATA[", b"&#0;", b"&#xd800;", b"</p>", b"<script>", b"&"),
    *("\u202e".encode(), "\ufeff".encode(), "́".encode() * 50, "٣".encode(), b"../", b"/", b"99999999999999999999-1"),
]


class Target(NamedTuple):
    """A parser: inputs that it reads, how to change them, and how it reads one."""

    seeds: Sequence[bytes]
    read: Callable[[bytes], object]
    changed: Callable[[random.Random, Sequence[bytes]], bytes]


def outcome(target: Target, data: bytes) -> tuple[str, str]:
    """The kind of the result, 'value', 'Mistake' or 'CheckFailed' if the law holds, and the message."""
    try:
        target.read(data)
    except (Mistake, CheckFailed) as error:
        message = str(error)
        if found := WORDS.search(message):
            return f"words of the interpreter: {found[0]}", message
        strange = {unicodedata.category(character) for character in message} & {"Cc", "Cs"}
        if strange or len(message) > 2000 or not message:
            return "a message that is not one printable sentence", message
        return "Mistake" if isinstance(error, Mistake) else "CheckFailed", message
    except (Exception, SystemExit) as error:
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = "" if place is None else f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}"
        return f"{type(error).__name__} at {where}", repr(error)[:500]
    return "value", ""


def inputs(name: str, target: Target, number: int, seed: int = 1) -> Iterator[bytes]:
    """The seeds as they are, and then inputs made from them."""
    generator = random.Random(f"{name} {seed}")
    yield from target.seeds[:number]
    for _ in range(number - len(target.seeds)):
        yield target.changed(generator, target.seeds)


# How inputs are changed.


def changed_bytes(generator: random.Random, seeds: Sequence[bytes]) -> bytes:
    data = bytearray(generator.choice(seeds))
    for _ in range(generator.choice((1, 1, 1, 2, 3, 8))):
        begin, length = generator.randint(0, len(data)), generator.choice((1, 2, 4, 9, 40))
        match generator.randrange(8):
            case 0:
                del data[begin : begin + length]
            case 1:
                data[begin:begin] = data[begin : begin + length] * generator.choice((1, 2, 20))
            case 2:
                del data[begin:]
            case 3:
                other = generator.choice(seeds)
                cut = generator.randint(0, len(other))
                data[begin : begin + length] = other[cut : cut + generator.choice((1, 8, 100))]
            case 4 | 5:
                data[begin : begin + generator.choice((0, 0, length))] = generator.choice(TOKENS)
            case 6 if data:
                at = min(begin, len(data) - 1)
                data[at] ^= 1 << generator.randrange(8)
            case 7:
                data[begin : begin + length] = generator.randbytes(length)
    return bytes(data)


def _hostile(generator: random.Random) -> Any:
    return copy.deepcopy(generator.choice(HOSTILE))


def changed_value(generator: random.Random, value: Any) -> Any:
    """A copy of nested dictionaries and lists with some values or keys replaced, removed or added."""
    value = json.loads(json.dumps(value))
    for _ in range(generator.choice((1, 1, 1, 2, 5))):
        parent: Any = value
        while True:
            names = list(parent) if isinstance(parent, dict) else range(len(parent))
            if not names:
                break
            name = generator.choice(list(names))
            if isinstance(parent[name], (dict, list)) and parent[name] and generator.random() < 0.8:
                parent = parent[name]
                continue
            match generator.randrange(8):
                case 0:
                    del parent[name]
                case 1 if isinstance(parent, dict):
                    parent[generator.choice(("x", "_args_", "_partial_", "_target_", "finished", "0", "é"))] = _hostile(
                        generator
                    )
                case 2:
                    parent[name] = [parent[name]]
                case 3 if isinstance(parent, list):
                    parent.append(_hostile(generator))
                case _:
                    parent[name] = _hostile(generator)
            break
    return value


def changed_by(
    load: Callable[[str], Any], dump: Callable[[Any], str]
) -> Callable[[random.Random, Sequence[bytes]], bytes]:
    """Changes bytes or, twice as often, the values of a text that `load` reads and `dump` writes."""

    def changed(generator: random.Random, seeds: Sequence[bytes]) -> bytes:
        if generator.random() < 1 / 3:
            return changed_bytes(generator, seeds)
        value = changed_value(generator, load(generator.choice(seeds).decode()))
        return _text(dump, value)

    return changed


def _text(dump: Callable[[Any], str], value: Any) -> bytes:
    text = dump(value)
    for written in (f'"{_HUGE}"', f"'{_HUGE}'", _HUGE):  # Python itself writes no integers of this length
        text = text.replace(written, "9" * 5000)
    return text.encode("utf-8", "surrogatepass")


changed_json = changed_by(json.loads, json.dumps)
changed_yaml = changed_by(yaml.safe_load, lambda value: yaml.safe_dump(value, allow_unicode=True, sort_keys=False))


# The targets.


def stored(arguments: Sequence[str]) -> dict[str, Any]:
    """What a run that is trained with these arguments stores in config.yaml."""
    return {key: value for key, value in configuration("train", arguments).items() if key not in NOT_STORED}


class Workshop:
    """A finished run with fresh weights, and a folder for the inputs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.run = folder, RunDirectory(folder / "run")
        self.run.path.mkdir(parents=True)
        self.config = stored(TINY)
        self.run.write_config(self.config)
        settings = validated(RunSettings, self.config)
        lines = [normalize(line) for line in read_lines(SAMPLE / "phrases.vi")[:60]]
        tokenizer = Tokenizer(train_tokenizer(lines, kind="bpe", size=380, character_coverage=1.0))
        self.tokenizers = TokenizerPair(tokenizer, tokenizer)
        self.run.write_tokenizers(self.tokenizers, settings.direction)
        self.model = build_model(settings.model, self.tokenizers)
        save_model(self.model, str(self.run.weights))
        self.metrics = {
            "finished": True,
            "command": "python -m nmt.train model=transformer",
            "tokenizers": tokenizer_hashes(self.tokenizers, settings.direction),
            "steps": 9,
        }
        self.run.write_metrics(self.metrics)
        self.server: Server | None = None
        self.originals = {path.name: path.read_bytes() for path in self.run.path.iterdir() if path.is_file()}

    def file(self, name: str, data: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(data)
        return path

    @cached_property
    def targets(self) -> dict[str, Target]:
        """All targets by name."""
        return {
            "config.yaml": Target(self.configurations(), self.read_config, changed_yaml),
            "settings": Target(self.configurations(), self.read_settings, changed_yaml),
            "search": Target(self.searches(), self.read_search, changed_json),
            "metrics.json": Target([self.originals["metrics.json"]], self.read_metrics, changed_json),
            "scores.json": Target([self.scores()], self.read_scores, changed_json),
            "export.json": Target([self.export()], self.read_export, changed_json),
            "model.safetensors": Target([self.originals["model.safetensors"]], self.read_weights, changed_weights),
            "tokenizer.model": Target([self.tokenizers.source.model], self.read_tokenizer, changed_bytes),
            "manifest.json": Target([self.maps()[0]], self.read_manifest, changed_json),
            "maps.npz": Target([self.maps()[1]], self.read_arrays, changed_arrays),
            "sentences.jsonl": Target([SENTENCES], self.read_sentences, changed_bytes),
            "alignments": Target([b"0-0 1?1\n\n1-2 0-1\n", b"0-0\n2-1\n"], self.read_links, changed_bytes),
            "documents": Target([b"a\na\nb\n", b"a\nb\nc\n"], self.read_documents, changed_bytes),
            "dictionary.tsv": Target(["soup\tsúp\nice cream\tkem\n".encode()], self.read_dictionary, changed_bytes),
            "prefixes": Target(["Mai \n\nmột hai\n".encode(), b"\n\n\n"], self.read_prefixes, changed_bytes),
            "zip": Target(zips(), lambda data: self.read_archive("a.zip", data), changed_bytes),
            "tar": Target(tars(), lambda data: self.read_archive("a.tar", data), changed_bytes),
            "tar.gz": Target(
                [gzip.compress(tars()[0])], lambda data: self.read_archive("a.tar.gz", data), changed_bytes
            ),
            "HTML": Target(PAGES, read_page, changed_bytes),
            "requests": Target(REQUESTS, self.read_request, changed_json),
        }

    def close(self) -> None:
        """Stops the server, if it was asked anything."""
        if self.server is not None:
            self.server.close()

    def read_request(self, data: bytes) -> None:
        """Sends a request to a server of the run. Raises Mistake if it is refused, and AssertionError for a bug."""
        try:
            request = json.loads(data)
        except (ValueError, RecursionError):  # bytes that describe no request: a body that is no JSON
            request = {**json.loads(REQUESTS[0]), "body": data.decode("latin-1")}
        if not isinstance(request, dict) or not isinstance(request.get("headers"), dict):
            return
        if self.server is None:
            self.put("", b"")
            self.server = Server(self.run.path)
        body = request.get("body", "")
        content = body if isinstance(body, str) else json.dumps(body)
        headers = {key: str(value) for key, value in request["headers"].items()}
        status, answer = self.server.ask(
            str(request.get("method")), str(request.get("path")), headers, content.encode("utf-8", "surrogatepass")
        )
        if status >= 500 and status not in (503, 504):
            raise AssertionError(f"status {status}: {answer[:300]!r}")
        if status >= 400:
            raise Mistake(answer.decode("utf-8", "replace") or f"status {status}")

    def put(self, name: str, data: bytes) -> None:
        """Writes one file of the run, if one has this name, and all others as they were."""
        for other, content in self.originals.items():
            (self.run.path / other).write_bytes(data if other == name else content)

    def read_config(self, data: bytes) -> None:
        self.put("config.yaml", data)
        config = self.run.config()
        check_nodes(config, self.run.path / "config.yaml")
        validated(RunSettings, config)

    def read_settings(self, data: bytes) -> None:
        """What a resumed run does with its configuration before it reads text."""
        self.put("config.yaml", data)
        config = self.run.config()
        settings = validated(RunSettings, config)
        check_nodes(config, self.run.path / "config.yaml")
        Translation().check_buildable(settings)
        choose_machine(settings.trainer)

    def configurations(self) -> list[bytes]:
        others = [yaml.safe_dump(stored(arguments), sort_keys=False).encode() for arguments in OTHERS]
        return [self.originals["config.yaml"], *others]

    def searches(self) -> list[bytes]:
        return [json.dumps(named_search(name)).encode() for name in ("beam", "sampling")]

    def read_search(self, data: bytes) -> None:
        """A search with settings of a request."""
        try:
            asked = json.loads(data)
        except (ValueError, RecursionError):
            return
        if not isinstance(asked, dict):
            return
        stored = named_search("sampling" if "samples" in asked else "beam")
        # A node in full comes from the user's own command line.
        known = {key: value for key, value in asked.items() if "_target_" not in str({key: value})}
        algorithm = make(search_config(stored, known))
        if algorithm.rows_per_sentence > 8 or algorithm.constraints.min_length > 50:
            return
        algorithm.constraints.max_length = min(algorithm.constraints.max_length or 9, 50)
        translator = Translator(bind(algorithm, self.model), self.tokenizers)
        list(translator.stream([("Mai", ""), ("", "")]))

    def read_metrics(self, data: bytes) -> None:
        self.put("metrics.json", data)
        self.run.require_finished()
        metrics = self.run.metrics()
        self.run.tokenizers(Direction.parse("en-vi"), metrics)
        if isinstance(metrics.get("command"), str):
            changed_command(metrics["command"], self.config, self.config)

    def loaded(self) -> LoadedRun:
        settings = validated(RunSettings, self.config)
        return LoadedRun(self.run, settings, self.tokenizers, self.model, torch.device("cpu"))

    def scores(self) -> bytes:
        """The scores of three translations."""
        hypotheses, test_set = ["một hai", "", "Mai ba"], self.test_set()
        test_set.out.mkdir(parents=True, exist_ok=True)
        (test_set.out / HYPOTHESES).write_text("".join(f"{line}\n" for line in hypotheses), encoding="utf-8")
        scores = corpus_scores(hypotheses, test_set.references, all_metrics(tokenized=False))
        record = {
            **conditions([self.loaded()], test_set),
            "scores": [score.record() for score in scores],
            "perplexity": {"word": 12.5, "piece": 3.25, "lines": 3},
            "sentences_per_second": 1.5,
            "aer": {"value": 0.25, "note": "cross, layer 1"},
        }
        return json.dumps(record).encode()

    def test_set(self) -> TestSet:
        sources, references = ["a", "b", "c"], [["một hai", "ba", "Mai ba bốn"]]
        return TestSet(sources, references, None, None, self.run.path / "evaluation" / "test", tokenized=False)

    def read_scores(self, data: bytes) -> None:
        """As nmt.compare reads the scores of a run that it does not translate again."""
        test_set = self.test_set()
        (test_set.out / SCORES).write_bytes(data)
        stored = stored_scores(self.loaded(), test_set)
        if stored is None:
            raise Mistake("The stored scores are not used.")
        system = System({"run": "r"}, *stored, self.metrics)
        scored_on_tokens(system)
        system_section([system]).table.markdown()

    def export(self) -> bytes:
        """The record of an export whose only file is empty."""
        folder = self.folder / "export"
        folder.mkdir(exist_ok=True)
        (folder / "model.bin").touch()
        files = file_digests(folder)
        return json.dumps(
            {**origin(self.loaded().stored, "ctranslate2", "int8"), "parity": [1.0], "files": files}
        ).encode()

    def read_export(self, data: bytes) -> None:
        """As nmt.export and the engines read the record of an export, before they replace or open it."""
        folder = self.folder / "export"
        (folder / RECORD).write_bytes(data)
        check_replaceable(folder, overwrite=True)
        opened, reason = open_kept(self.loaded(), "ctranslate2", folder, "int8")
        if opened is None and reason != "the old export is damaged":  # as that of the seed is
            raise Mistake(reason)

    def read_weights(self, data: bytes) -> None:
        """As load_run reads them."""
        file, refusal = self.file("model.safetensors", data), Mistake("The file holds other weights.")
        if not header_matches(self.model, file):
            raise refusal
        try:
            load_weights(self.model, file, "32-true")
        except (RuntimeError, SafetensorError) as error:
            raise refusal from error

    def read_tokenizer(self, data: bytes) -> None:
        tokenizer = Tokenizer(data)
        tokenizer.decode(tokenizer.encode("một hai"))

    def maps(self) -> tuple[bytes, bytes]:
        """A manifest and the arrays of its only sentence."""
        source, target = ["▁a", "b"], ["▁c"]  # EOS is added
        content = io.BytesIO()
        np.savez(content, **{"00001/cross": np.full((1, 2, 2, 3), 1 / 3, dtype=np.float32)})
        site = {"layers": 1, "heads": 2, "rows": "target", "columns": "source"}
        entry = {
            **{"line": 1, "rank": 1, "file": "maps/1.npz", "sha256": "", "score": -1.5},
            **{"source_pieces": source, "target_pieces": target},
        }
        manifest = {
            **{"format": "nmt-attention maps", "version": 1, "made_from": {"lines": 1, "run_dir": "r"}},
            **{"sites": {"cross": site}, "sentences": [entry]},
        }
        for name in ("FORMAT", "VERSION"):
            manifest[name.lower()] = getattr(__import__("nmt.maps.map_files", fromlist=[name]), name)
        return json.dumps(manifest).encode(), content.getvalue()

    def _read_maps(self, manifest: bytes, arrays: bytes) -> None:
        folder = self.folder / "maps"
        (folder / "maps").mkdir(parents=True, exist_ok=True)
        (folder / MANIFEST).write_bytes(manifest)
        (folder / "maps" / "1.npz").write_bytes(arrays)
        found = MapFolder(folder)
        _ = found.origin, found.number(found.lines), list(found.sentences())

    def read_manifest(self, data: bytes) -> None:
        arrays = self.maps()[1]
        self._read_maps(
            data.replace(b'"sha256": ""', f'"sha256": "{hashlib.sha256(arrays).hexdigest()}"'.encode()), arrays
        )

    def read_arrays(self, data: bytes) -> None:
        digest = f'"sha256": "{hashlib.sha256(data).hexdigest()}"'.encode()
        self._read_maps(self.maps()[0].replace(b'"sha256": ""', digest), data)

    def read_sentences(self, data: bytes) -> None:
        _stored_lines(self.file("sentences.jsonl", data))

    def read_links(self, data: bytes) -> None:
        alignments = read_alignments(self.file("a.align", data))
        check_links(self.folder / "a.align", alignments, ["a b c"] * len(alignments), ["d e f"] * len(alignments))
        rates([alignment.possible for alignment in alignments], alignments)

    def read_documents(self, data: bytes) -> None:
        documents_of_file(self.file("a.doc", data), 3)

    def read_dictionary(self, data: bytes) -> None:
        Dictionary.load(self.file("dictionary.tsv", data)).replaced("The soup is hot, the ice cream cold.")

    def read_prefixes(self, data: bytes) -> None:
        list(_with_prefixes(iter(["one", "two", "three"]), self.file("prefixes", data)))

    def read_archive(self, name: str, data: bytes) -> None:
        out = self.folder / "extracted"
        try:
            extract(self.file(name, data), out, 10**7)
        finally:
            shutil.rmtree(out, ignore_errors=True)


class Server:
    """The application of nmt.serve, called without a connection."""

    def __init__(self, run: Path) -> None:
        limits = Limits(characters=300, sentences=5, alternatives=2, body_bytes=50_000, seconds=20.0, requests=9)
        gallery = Gallery([run], "cpu", "float32", max_models=1)
        batcher = Batcher(gallery, batch_tokens=400, batch_window=0.0, max_waiting=100)
        self.app = application(Service(gallery, batcher, limits, Access(frozenset(), None, ())))
        self.loop = asyncio.new_event_loop()
        self.lifespan = self.app.router.lifespan_context(self.app)
        self.loop.run_until_complete(self.lifespan.__aenter__())

    def ask(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """The status and the content of the answer."""
        return self.loop.run_until_complete(asyncio.wait_for(self._ask(method, path, headers, body), 60))

    async def _ask(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        path, _, query = path.partition("?")
        names = {"host": "localhost", "content-length": str(len(body)), **headers}
        scope = {
            **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "method": method},
            **{"path": path, "raw_path": path.encode("utf-8", "replace"), "root_path": ""},
            **{
                "query_string": query.encode("utf-8", "replace"),
                "client": ("127.0.0.1", 1),
                "server": ("localhost", 80),
            },
            "headers": [
                (key.lower().encode("utf-8", "replace"), value.encode("utf-8", "replace"))
                for key, value in names.items()
            ],
        }
        messages, sent = [{"type": "http.request", "body": body, "more_body": False}], list[dict[str, Any]]()

        async def receive() -> dict[str, Any]:
            if not messages:
                await asyncio.Event().wait()  # the client stays
            return messages.pop()

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        content = b"".join(message.get("body", b"") for message in sent[1:])
        return sent[0]["status"], content

    def close(self) -> None:
        self.loop.run_until_complete(self.lifespan.__aexit__(None, None, None))
        self.loop.close()


def _request(path: str, body: object, method: str = "POST", kind: str = "application/json") -> bytes:
    return json.dumps({"method": method, "path": path, "headers": {"content-type": kind}, "body": body}).encode()


_PAIR = {"run": "run", "text": "Mai", "target": "một", "beam_size": 2, "length_penalty": 0.5}
_CHANGE = {"site": "cross", "way": "scale", "columns": [0], "factor": 0, "layer": 0, "head": 1, "steps": [0]}
REQUESTS = [
    _request("/translate", {"q": ["Mai", "a b."], "source": "en", "target": "vi", "format": "html", "alternatives": 1}),
    _request("/translate", "q=Mai&source=auto&target=vi", kind="application/x-www-form-urlencoded"),
    _request("/detect", {"q": "Mai"}),
    _request("/v2/translate", {"text": ["Mai"], "target_lang": "VI", "source_lang": "EN", "tag_handling": "html"}),
    _request("/v1/translate", {"run": "run", "text": "Mai", "prefix": "m", "n_best": 2, "beam_size": 2}),
    _request("/v1/translate/stream", {**_PAIR, "site": "cross", "layer": 0, "head": 0}),
    _request("/v1/attend", _PAIR),
    _request("/v1/score", _PAIR),
    _request("/v1/alternatives", {**_PAIR, "number": 3}),
    _request("/v1/intervene", {**_PAIR, "changes": [_CHANGE, {"temperature": 2.0}, {"normalizer": "sparsemax"}]}),
    _request("/v1/explain", {**_PAIR, "site": "cross", "layer": 0, "head": 0, "row": 0}),
    _request("/v1/attribute", {**_PAIR, "method": "occlusion", "contrast": "m"}),
    _request("/v1/align", {"run": "run", "text": "Mai", "guess": [[0, 0]], "layer": 0, "head": 0}),
    _request("/v1/runs/run?api_key=x", "", "GET"),
    _request("/v1/examples?run=run", "", "GET"),
    _request("/docs/x", "", "HEAD"),
]
SENTENCES = b'{"source": "a", "references": ["b"], "document": 1}\n{"source": "c", "references": ["d"]}\n'
PAGES = [
    b"<p>One two. <b>Three</b> four.</p><p translate=no>Five</p><pre>six</pre><!-- seven --><![if IE]>x<![endif]>",
    "<div class='notranslate x'>à</div>a &amp; b &lt; c<br/>\n<textarea>q</textarea><a href=\"?a=1&b\">l</a>".encode(),
]


def changed_weights(generator: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Mostly the header, because every change of the numbers is read the same way."""
    data = seeds[0]
    size = struct.unpack("<Q", data[:8])[0]
    header, body = data[8 : 8 + size], data[8 + size :]
    match generator.randrange(4):
        case 0:
            return changed_bytes(generator, seeds)
        case 1:
            header = changed_bytes(generator, [header])
        case _:
            header = _text(json.dumps, changed_value(generator, json.loads(header)))
    length = len(header) if generator.random() < 0.9 else generator.choice((0, 1, 2**31, 2**63 - 1, 2**64 - 1))
    return struct.pack("<Q", length) + header + body


def changed_arrays(generator: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Changed bytes of an .npz file, or one with arrays of other names, types and shapes."""
    if generator.random() < 0.5:
        return changed_bytes(generator, seeds)
    kinds = ("<f4", ">f8", "<f2", "?", "<i8", "<c16", "<U5", "S3", "<M8[s]", "V4", [("a", "<f4"), ("b", "<i4")])
    shapes = (
        (1, 2, 2, 3),
        (1, 2, 3, 2),
        (0, 2, 2, 3),
        (1, 1, 2, 3),
        (2, 3),
        (),
        (3,),
        (1, 2, 2),
        (1, 2, 2, 0),
        (5, 5, 5, 5),
    )
    names = (
        "cross",
        "cross.prior",
        "cross.center",
        "cross.allowed",
        "cross.mask",
        "cross.attribution",
        "x",
        "encoder_self",
        "..",
    )
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name in dict.fromkeys(["cross", *generator.choices(names, k=generator.randrange(4))]):
            part = io.BytesIO()
            array = np.zeros(generator.choice((*shapes, *[(1, 2, 2, 3)] * 9)), dtype=np.dtype(generator.choice(kinds)))
            if array.dtype.kind == "f":
                array[...] = generator.choice((0.0, 0.5, -1.0, math.nan, math.inf))
            np.lib.format.write_array(part, array, allow_pickle=False)
            data = part.getvalue()
            file.writestr(f"00001/{name}.npy", changed_bytes(generator, [data]) if generator.random() < 0.3 else data)
    return content.getvalue()


def zips() -> list[bytes]:
    contents = []
    for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", kind) as file:
            file.writestr("a/train.en", "one\ntwo\n" * 9)
            file.writestr("a/é.vi", "một\n")
        contents.append(content.getvalue())
    return contents


def tars() -> list[bytes]:
    contents = []
    for kind in (tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w", format=kind) as file:
            for name in ("a/train.en", "a/" + "long" * 30 + "/é.vi"):
                entry = tarfile.TarInfo(name[:100] if kind == tarfile.USTAR_FORMAT else name)
                entry.size = 4
                if kind == tarfile.PAX_FORMAT:
                    entry.pax_headers = {"mtime": "1.5", "comment": "c"}
                file.addfile(entry, io.BytesIO(b"one\n"))
        contents.append(content.getvalue())
    return contents


def read_page(data: bytes) -> None:
    async def translate(sentences: Sequence[str]) -> list[list[str]]:
        return [[sentence.upper()] for sentence in sentences]

    text = data.decode("utf-8", "replace")
    asyncio.run(translated_html([text], "en", 1, translate))
