import io
import json
import os
import tracemalloc
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.data.cache import file_digest
from nmt.errors import Mistake
from nmt.maps.attention_map import AttentionMap, LocalWindow, SentenceMaps, site_labels
from nmt.maps.map_files import MapFolder, write_maps

DRAW = np.random.default_rng(7)
SITE = {"layers": 2, "heads": 3, "rows": "target", "columns": "source"}
SITES = {"cross": SITE, "encoder_self": SITE}


def sentence(line: int, rank: int = 1, *, local: bool = False) -> SentenceMaps:
    source, target = [f"▁{line}", "b", "▁<c>"], ["▁người"] * line
    rows, columns = line + 1, 4
    labels = site_labels(source, target)
    shape = (2, 3, rows, columns)
    window = LocalWindow(DRAW.random((2, 3, rows)), DRAW.random(shape) > 0.5, DRAW.random(shape)) if local else None
    maps = [
        AttentionMap("cross", DRAW.random(shape, dtype=np.float32), *labels["cross"], window),
        AttentionMap("encoder_self", DRAW.random((2, 3, 4, 4), dtype=np.float32), *labels["encoder_self"]),
    ]
    return SentenceMaps(line, rank, source, target, maps, -1.25 if rank > 1 else None)


def test_maps_are_read_as_they_were_written_and_in_order(tmp_path: Path) -> None:
    written = [sentence(3), sentence(1, rank=2), sentence(1), sentence(2, local=True)]
    write_maps(tmp_path / "maps", written, SITES, {"seed": 5, "lines": 3})
    folder = MapFolder(tmp_path / "maps")
    found = list(folder.sentences())
    assert [(item.line, item.rank) for item in found] == [(1, 1), (1, 2), (2, 1), (3, 1)]
    for one, other in zip(found, [written[2], written[1], written[3], written[0]], strict=True):
        assert (one.source_pieces, one.target_pieces) == (other.source_pieces, other.target_pieces)
        assert one.score == other.score
        for map_, expected in zip(one.maps, other.maps, strict=True):
            assert map_.weights.dtype == np.float32
            np.testing.assert_array_equal(map_.weights, expected.weights)
            assert (map_.site, map_.inputs, map_.outputs) == (expected.site, expected.inputs, expected.outputs)
            assert map_.columns == expected.columns
            assert (map_.local is None) == (expected.local is None)
    assert found[2].maps[0].local is not None
    assert written[3].maps[0].local is not None
    for part in ("center", "allowed", "prior"):
        np.testing.assert_array_equal(
            getattr(found[2].maps[0].local, part), getattr(written[3].maps[0].local, part), err_msg=part
        )


def test_the_manifest_describes_the_files(tmp_path: Path) -> None:
    manifest = write_maps(tmp_path, [sentence(2)], SITES, {"seed": 5, "lines": 3}).manifest
    assert manifest == json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["format"], manifest["version"]) == ("nmt-attention-maps", 1)
    assert (manifest["sites"], manifest["made_from"]) == (SITES, {"seed": 5, "lines": 3})
    [entry] = manifest["sentences"]
    assert entry["source_pieces"] == ["▁2", "b", "▁<c>"]
    assert entry["source_words"] == [0, 0, 1]
    assert entry["target_words"] == [0, 1]
    assert len(entry["sha256"]) == 64
    assert (tmp_path / entry["file"]).is_file()


def test_the_files_open_without_this_package(tmp_path: Path) -> None:
    item = sentence(2, local=True)
    write_maps(tmp_path, [item], SITES, {"lines": 5})
    with np.load(tmp_path / "maps" / "00001.npz", allow_pickle=False) as arrays:
        names = ("cross", "cross.center", "cross.allowed", "cross.prior", "encoder_self")
        assert set(arrays.files) == {f"00002/{name}" for name in names}
        np.testing.assert_array_equal(arrays["00002/cross"], item.maps[0].weights)


def test_some_lines_can_be_read_alone(tmp_path: Path) -> None:
    folder = write_maps(tmp_path, [sentence(line) for line in (1, 2, 5)], SITES, {"lines": 5})
    assert folder.lines == [1, 2, 5]
    assert [item.line for item in folder.sentences([5, 1])] == [1, 5]
    with pytest.raises(Mistake, match="has no maps for line 3; it has maps for 3 lines from 1 to 5"):
        next(folder.sentences([3]))


def test_writing_again_replaces_all_maps(tmp_path: Path) -> None:
    write_maps(tmp_path, [sentence(1), sentence(2)], SITES, {"lines": 5})
    write_maps(tmp_path, [sentence(2)], SITES, {"lines": 5})
    assert [file.name for file in (tmp_path / "maps").iterdir()] == ["00001.npz"]


def test_a_file_holds_many_sentences_and_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.maps.map_files._IN_FILE", 2)
    written = [sentence(line) for line in (5, 1, 4, 2, 3)]
    folder = write_maps(tmp_path, written, SITES, {"lines": 5})
    assert sorted(file.name for file in (tmp_path / "maps").iterdir()) == ["00001.npz", "00002.npz", "00003.npz"]
    digests = []
    monkeypatch.setattr("nmt.maps.map_files.file_digest", lambda path: digests.append(path) or file_digest(path))
    found = list(folder.sentences())
    assert [item.line for item in found] == [1, 2, 3, 4, 5]
    for item in found:
        [expected] = [one for one in written if one.line == item.line]
        np.testing.assert_array_equal(item.site("cross").weights, expected.maps[0].weights)
    assert len(digests) == 3


def interrupted():
    yield sentence(1)
    raise KeyboardInterrupt


def test_an_interrupted_writing_leaves_the_earlier_maps(tmp_path: Path) -> None:
    write_maps(tmp_path, [sentence(3)], SITES, {"lines": 5})
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(KeyboardInterrupt):
        write_maps(tmp_path, interrupted(), SITES, {"lines": 5})
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert [item.line for item in MapFolder(tmp_path).sentences()] == [3]


def test_a_manifest_may_start_with_a_byte_order_mark(tmp_path: Path) -> None:
    """Editors on Windows write one."""
    written = write_maps(tmp_path, [sentence(2)], SITES, {"seed": 5, "lines": 3}).manifest
    file = tmp_path / "manifest.json"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert MapFolder(tmp_path).manifest == written


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_maps(tmp_path, interrupted(), SITES, {"lines": 5})
    with pytest.raises(Mistake, match=r"is not a folder of attention maps, because it has no manifest\.json"):
        MapFolder(tmp_path)


WHOLE = '{"format": "nmt-attention-maps", "version": 1, "made_from": {"lines": 1}, "sites": {}, "sentences": []}'


@pytest.mark.parametrize(
    ("text", "sentence_"),
    [
        ("{", "is damaged"),
        ("[" * 100_000, "is damaged"),
        (WHOLE.replace('"lines": 1', '"lines": ' + "9" * 5000), "is damaged"),
        (WHOLE.replace('"lines": 1', '"lines": ' + "9" * 4000), "made_from.lines is out of range"),
        (WHOLE.replace('"lines": 1', '"lines": 1, "step": "x"'), "made_from.step must be a whole number"),
        (WHOLE.replace('"sites": {}', '"sites": {"cross": []}'), "sites.cross must be an object"),
        (WHOLE.replace('"sentences": []', '"sentences": {}'), "sentences must be a list"),
        ("[]", "is damaged"),
        ('{"format": "x", "version": 1}', "is damaged or no file of nmt: "),
        (
            WHOLE.replace('"version": 1', '"version": 2'),
            r"^[^ ]* is damaged or no file of nmt: version must be 1\. Export the maps again\.$",
        ),
        (WHOLE.replace("[]", '[{"line": 1}]'), r"is damaged .*sentences\.0\.rank is missing"),
    ],
)
def test_a_foreign_manifest_is_refused_and_not_replaced(tmp_path: Path, text: str, sentence_: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(Mistake, match=sentence_):
        MapFolder(tmp_path)
    with pytest.raises(Mistake, match=sentence_):
        write_maps(tmp_path, [sentence(1)], SITES, {"lines": 5})
    assert (tmp_path / "manifest.json").read_text() == text


@pytest.mark.parametrize("name", ["../secret.npz", "/etc/passwd", "maps/../../x.npz", "maps/a.npz"])
def test_a_file_name_outside_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    folder = write_maps(tmp_path, [sentence(1)], SITES, {"lines": 5})
    folder.manifest["sentences"][0]["file"] = name
    with pytest.raises(Mistake, match="which is not a file of maps: export the maps again"):
        next(folder.sentences())


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    folder = write_maps(tmp_path, [sentence(1)], SITES, {"lines": 5})
    file = tmp_path / "maps" / "00001.npz"
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(Mistake, match=r"00001\.npz is missing or differs from its manifest"):
        next(folder.sentences())
    file.unlink()
    with pytest.raises(Mistake, match=r"00001\.npz is missing or differs from its manifest"):
        next(folder.sentences())


def test_pickles_and_wrong_shapes_are_refused(tmp_path: Path) -> None:
    """A stranger's manifest may have the digest of anything."""
    folder = write_maps(tmp_path, [sentence(1)], SITES, {"lines": 5})
    file = tmp_path / "maps" / "00001.npz"

    def give(content: bytes) -> None:
        file.write_bytes(content)
        folder.manifest["sentences"][0]["sha256"] = file_digest(file)

    for content in (b"", b"PK\x03\x04 not a zip", file.read_bytes()[:200]):
        give(content)
        with pytest.raises(Mistake, match=r"00001\.npz is damaged"):
            next(folder.sentences())
    right = next(write_maps(tmp_path, [sentence(1)], SITES, {"lines": 5}).sentences()).site("cross").weights
    for arrays in (
        {"cross": np.array([{"a": 1}], dtype=object)},
        {"cross": np.ones((2, 3, 9, 9))},
        {"cross": np.ones(4)},
        {"cross": right.astype(str)},
        {"cross": right.astype([("a", "f4")])},
        {"cross": right, "cross.center": right[..., 0]},
        {"cross": right, "cross.center": right[..., 0], "cross.allowed": right},
        {"cross": right, "cross.center": right, "cross.allowed": right > 0},
        {"cross": right, "cross.attribution": right.astype(str)},
        {"cross.mask": right > 0},
    ):
        np.savez(file, **{f"00001/{name}": array for name, array in arrays.items()})
        give(file.read_bytes())
        with pytest.raises(Mistake, match=r"00001\.npz is damaged"):
            next(folder.sentences())
    # What is compressed cannot be decompressed, or is said to be compressed in a way that zipfile does not know.
    np.savez_compressed(file, **{"00001/cross": right})
    whole = bytearray(file.read_bytes())
    method = whole.index(b"PK\x01\x02") + 10
    for start, end in ((60, len(whole) // 2), (method, method + 2)):
        content = bytearray(whole)
        content[start:end] = b"\x07" * (end - start)
        give(bytes(content))
        with pytest.raises(Mistake, match=r"00001\.npz is damaged"):
            next(folder.sentences())


BOMBS = [
    "deflated zeros",
    "a claim of its header",
    "a claim of the archive",
    "many copies",
    "a header without end",
    "lzma",
]


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("agrees", [False, True], ids=["the manifest is right", "the manifest agrees"])
def test_arrays_larger_than_the_manifest_allows_are_not_unpacked(tmp_path: Path, bomb: str, agrees: bool) -> None:
    """A few kilobytes may claim, or unpack to, any number of bytes."""
    layers = 2**25
    folder = write_maps(tmp_path, [sentence(1)], {"cross": {**SITE, "layers": layers if agrees else 2}}, {"lines": 5})
    file, header = tmp_path / "maps" / "00001.npz", io.BytesIO()
    shape = {"descr": "<f4", "fortran_order": False, "shape": (layers, 3, 2, 4)}
    np.lib.format.write_array_header_1_0(header, shape)
    start = b"\x93NUMPY\x02\0\xff\xff\xff\xff" if bomb == "a header without end" else header.getvalue()
    data = start + b"\0" * (0 if "claim" in bomb else 2**23)
    kind = zipfile.ZIP_LZMA if bomb == "lzma" else zipfile.ZIP_DEFLATED
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", kind) as archive:
        warnings.simplefilter("ignore")  # zipfile warns of copies
        for _ in range(3 if bomb == "many copies" else 1):
            archive.writestr("00001/cross.npy", data)
    if bomb == "a claim of the archive":
        content = bytearray(file.read_bytes())
        size = content.index(b"PK\x01\x02") + 24
        content[size : size + 4] = (layers * 3 * 2 * 4 * 4 + len(start)).to_bytes(4, "little")
        file.write_bytes(content)
    folder.manifest["sentences"][0]["sha256"] = file_digest(file)
    tracemalloc.start()
    with pytest.raises(Mistake) as refused:
        next(folder.sentences())
    largest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    too_large = agrees and bomb == "a claim of the archive"
    message = "holds arrays of more than 2 GiB, which is too much to read: export the maps again with a lower"
    assert f"{file} {message if too_large else 'is damaged: export the maps again'}" in str(refused.value)
    assert largest < 2**22


def test_arrays_that_could_not_be_read_are_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.maps.map_files.LARGEST_ARRAYS", 100)
    with pytest.raises(Mistake, match=r"The maps of line 1 are arrays of more than .* with a lower max_tokens"):
        write_maps(tmp_path, [sentence(1)], SITES, {"lines": 5})


def test_a_file_with_a_terabyte_of_holes_is_not_read(tmp_path: Path) -> None:
    folder = write_maps(tmp_path, [sentence(1)], SITES, {"lines": 5})
    os.truncate(tmp_path / "maps" / "00001.npz", 2**40)
    with pytest.raises(Mistake, match=r"00001\.npz is damaged"):
        next(folder.sentences())


def test_a_bug_in_building_a_map_does_not_call_its_file_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(**_: object) -> None:
        raise TypeError("a bug")

    folder = write_maps(tmp_path, [sentence(1)], SITES, {"lines": 1})
    monkeypatch.setattr("nmt.maps.map_files.AttentionMap", fails)
    with pytest.raises(TypeError, match="a bug"):
        list(folder.sentences())


def test_foreign_files_in_the_folder_stay(tmp_path: Path) -> None:
    (tmp_path / "maps").mkdir()
    np.savez(tmp_path / "maps" / "mine.npz", a=np.ones(1))
    write_maps(tmp_path, [sentence(1)], SITES, {"lines": 5})
    assert sorted(file.name for file in (tmp_path / "maps").iterdir()) == ["00001.npz", "mine.npz"]


@pytest.mark.parametrize("path", [("made_from", "lines"), ("sites", "cross", "rows"), ("sites", "cross", "heads")])
def test_an_incomplete_manifest_is_refused(tmp_path: Path, path: tuple[str, ...]) -> None:
    write_maps(tmp_path, [sentence(2)], SITES, {"lines": 2})
    file = tmp_path / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    *parents, last = path
    part = manifest
    for parent in parents:
        part = part[parent]
    del part[last]
    file.write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(Mistake, match=r"Export the maps again\.$"):
        MapFolder(tmp_path)


def test_files_are_on_the_disk_before_the_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, fsync = set[int](), os.fsync

    def recorded(handle: int) -> None:
        synced.add(os.fstat(handle).st_ino)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", recorded)
    folder = write_maps(tmp_path, [sentence(1)], SITES, {"lines": 9})
    assert {file.stat().st_ino for file in folder.path.rglob("*.npz")} <= synced


def test_reading_a_file_does_not_search_the_whole_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.maps.map_files._IN_FILE", 1)
    folder = write_maps(tmp_path, [sentence(line) for line in range(1, 10)], SITES, {"lines": 9})
    searches = list[int]()

    class Entries(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            searches.append(1)
            return super().__iter__()

    folder.manifest["sentences"] = Entries(folder.manifest["sentences"])
    assert len([*folder.sentences()]) == 9
    assert len(searches) < 9


def test_two_exports_do_not_write_to_one_folder(tmp_path: Path) -> None:
    """The second one would delete what the first one is writing."""

    def sentences() -> Iterator[SentenceMaps]:
        yield sentence(1)
        with pytest.raises(Mistake, match=f"Another process is writing to {tmp_path}: wait until it has ended"):
            write_maps(tmp_path, [sentence(2)], SITES, {"lines": 2})
        yield sentence(3)

    assert write_maps(tmp_path, sentences(), SITES, {"lines": 3}).lines == [1, 3]
