"""nmt.download: corpora from the web or a folder, verified."""

import logging
import math
import shutil
import time
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

import yaml

from nmt.config.direction import Direction
from nmt.config.job import Job
from nmt.config.messages import unknown
from nmt.config.nodes import CONFIGS, Config
from nmt.data.archives import extract, stem
from nmt.data.fetch import Digest, DownloadFailed, Limits, Progress, checked_address, fetch
from nmt.data.hub import checked_name, write_splits
from nmt.errors import CheckFailed
from nmt.files import atomic_write, folder_to_write

logger = logging.getLogger(__name__)


# Before the name of a set on the Hugging Face hub.
_HUB = "hub:"


class _File(NamedTuple):
    url: str
    path: Path
    published: str
    """Its path at its source."""
    digest: Digest | None


def download(job: Job) -> None:
    """Prints the files that are there in the end; the licence and the source of each corpus go to the log.

    Raises ValueError for a name that is no corpus, an address that is not https, a `max_gib` that is no size and an
    `out` that may not be written to, FileNotFoundError for a `from` that is not there, CheckFailed when a file cannot
    be had.
    """
    config = job.config
    known = {path.stem: path for path in (CONFIGS / "corpus").glob("*.yaml")}
    wanted = [str(name) for name in (config["what"] if isinstance(config["what"], list) else [config["what"]])]
    if not wanted:
        raise ValueError(
            f"There is nothing to download: name {' or '.join(sorted(known))}, hub:OWNER/SET, or an https:// address."
        )
    if config["from"] is not None and not Path(str(config["from"])).is_dir():
        raise FileNotFoundError(f"from is {config['from']}, and there is no such folder; give one with the files.")
    limits, out = _limits(config["max_gib"]), Path(str(config["out"]))
    # All names before the first byte.
    hub = [checked_name(name.removeprefix(_HUB)) for name in wanted if name.startswith(_HUB)]
    wanted = [name for name in wanted if not name.startswith(_HUB)]
    languages = Direction.parse(str(config["languages"]))
    plans = [_plan(name, out, known) for name in wanted]
    _check_apart(plans)
    if config["from"] is not None and (web := [name for name in [*hub, *wanted] if name not in known]):
        raise ValueError(f"from={config['from']} is for corpora known by name, and {web[0]} is none.")
    if hub or not all((_folder(file, config) or file.path).exists() for files in plans for file in files):
        folder_to_write("out", out)
    try:
        for name, files in zip(wanted, plans, strict=True):
            if name in known:
                _tell(name, known[name])
            for file in files:
                for path in _bring(file, config, limits):
                    print(path)
        for name in hub:
            own = config["hub_config"]
            for path in write_splits(name, own, languages, out / "hub" / name / (own or "")):
                print(path)
    except DownloadFailed as error:
        raise CheckFailed(str(error)) from error


def _limits(gib: Any) -> Limits:
    if not 0 < gib < math.inf:
        raise ValueError(f"max_gib is {gib}; it must be a number above 0.")
    return Limits(int(gib * 2**30))


def _plan(name: str, out: Path, known: dict[str, Path]) -> list[_File]:
    """The files of a corpus or of an address."""
    if "://" in name:
        return [_File(checked_address(name), out / _file_name(name), _file_name(name), None)]
    if name not in known:
        raise ValueError(f"{unknown('corpus', name, known)} An address begins with https://.")
    corpus = yaml.safe_load(known[name].read_text(encoding="utf-8"))
    files = []
    for written, facts in corpus["files"].items():
        [digest] = [Digest(kind, facts[kind]) for kind in ("sha256", "git_sha1") if kind in facts]
        published = facts.get("path", written)
        url = facts.get("url") or urljoin(corpus["url"], published)
        files.append(_File(url, out / name / written, published, digest))
    return files


def _check_apart(plans: list[list[_File]]) -> None:
    """Raises ValueError when two files would be written to one place."""
    urls: dict[str, str] = {}
    for file in (file for files in plans for file in files):
        # An archive takes two: its own and that of what is in it.
        for path in {str(file.path), str(file.path.with_name(stem(file.path.name) or file.path.name))}:
            if (other := urls.setdefault(path, file.url)) != file.url:
                raise ValueError(f"{other} and {file.url} would both be written to {path}: give them one by one.")


def _folder(file: _File, config: Config) -> Path | None:
    """Where an archive is taken out to; None for what stays as it is."""
    name = stem(file.path.name) if file.digest is None and config["extract"] else None
    return file.path.with_name(name) if name else None


def _file_name(url: str) -> str:
    """The last part of an address. Raises ValueError when that is no name for a file."""
    name = unquote(PurePosixPath(urlsplit(url).path).name)
    if not name or name.startswith(".") or any(sign in name for sign in "/\\:\0\n"):
        raise ValueError(f"{url} does not end with the name of a file; give the address of one.")
    return name


def _tell(name: str, description: Path) -> None:
    corpus = yaml.safe_load(description.read_text(encoding="utf-8"))
    logger.info("%s. Licence: %s. Cite: %s.", name, corpus["licence"], corpus["citation"])


def _bring(file: _File, config: Config, limits: Limits) -> list[Path]:
    """The files that are there when one has been fetched or copied."""
    if config["from"] is not None:
        _copy(file, Path(str(config["from"])))
        return [file.path]
    folder = _folder(file, config)
    if folder and folder.is_dir():
        logger.info("%s is there already", folder)
        return sorted(path for path in folder.rglob("*") if path.is_file())
    if not fetch(file.url, file.path, file.digest, limits, _progress(file.path.name)):
        logger.info("%s is there already", file.path)
    return extract(file.path, folder, limits.most_bytes) if folder else [file.path]


def _copy(file: _File, folder: Path) -> None:
    """Copies a file of a corpus, which has its name here or its path at the source.

    Raises FileNotFoundError where there is neither, and ValueError for another file, here or there.
    """
    places = [folder / file.path.name, folder / file.published]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise FileNotFoundError(
            f"{folder} has no {' and no '.join(dict.fromkeys([places[0].name, file.published]))}: name the folder "
            "that has the files of this corpus."
        )
    for place in (found, file.path):
        if file.digest and place.exists() and (objection := file.digest.objection(place)):
            raise ValueError(f"{objection} {'Name another folder.' if place == found else 'Delete it first.'}")
    if not file.path.exists():
        file.path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(file.path) as part:
            shutil.copyfile(found, part)
            if file.digest and (objection := file.digest.objection(part)):
                raise ValueError(f"{objection} {found} changed while it was copied.")


def _progress(name: str, seconds: float = 5.0) -> Progress:
    """Logs how much of a file has come, how fast, and the time left, every so often."""
    begun: list[tuple[float, int]] = []
    told = time.monotonic()

    def tell(size: int, total: int) -> None:
        nonlocal told
        now = time.monotonic()
        if not begun:
            begun.append((now, size))
        if now - told < seconds or size == total:
            return
        told = now
        start, before = begun[0]
        rate = (size - before) / max(now - start, 1e-9)
        whole = f" of {total / 1e6:,.1f}" if total else ""
        left = f", {round((total - size) / rate)} s left" if total and rate > 0 else ""
        logger.info("%s: %.1f%s MB, %.2f MB a second%s", name, size / 1e6, whole, rate / 1e6, left)

    return tell
