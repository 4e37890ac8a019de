"""nmt.download: corpora from the web or a folder, verified."""

import logging
import shutil
import time
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

import yaml

from nmt.data.archives import extract, stem
from nmt.data.download import Digest, DownloadFailed, Limits, Progress, fetch
from nmt.run.compose import CONFIGS, Config, Job
from nmt.run.exits import CheckFailed
from nmt.run.refusals import unknown
from nmt.run.rundir import replaced

logger = logging.getLogger(__name__)


class _File(NamedTuple):
    url: str
    path: Path
    published: str
    """Its path at its source."""
    digest: Digest | None


def download(job: Job) -> None:
    """Prints the files that are there in the end; the licence and the source of each corpus go to the log.

    Raises ValueError for a name that is no corpus and for an address that is not https, CheckFailed when a file cannot
    be had.
    """
    config = job.config
    wanted = config["what"] if isinstance(config["what"], list) else [config["what"]]
    if not wanted:
        raise ValueError("There is nothing to download: name a corpus or an https:// address.")
    gib = config["max_gib"]
    if not gib > 0:
        raise ValueError(f"max_gib is {gib}; it must be more than 0.")
    limits, out = Limits(int(gib * 2**30)), Path(str(config["out"]))
    known = {path.stem: path for path in (CONFIGS / "corpus").glob("*.yaml")}
    # All names before the first byte.
    plans = [_plan(str(name), out, known) for name in wanted]
    if config["from"] is not None and (web := [str(name) for name in wanted if str(name) not in known]):
        raise ValueError(f"from={config['from']} is for corpora known by name, and {web[0]} is none.")
    try:
        for name, files in zip(wanted, plans, strict=True):
            if str(name) in known:
                _tell(str(name), known[str(name)])
            for file in files:
                for path in _bring(file, config, limits):
                    print(path)
    except DownloadFailed as error:
        raise CheckFailed(str(error)) from error


def _plan(name: str, out: Path, known: dict[str, Path]) -> list[_File]:
    """The files of a corpus or of an address."""
    if "://" in name:
        return [_File(name, out / _file_name(name), _file_name(name), None)]
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
    name = stem(file.path.name) if file.digest is None and config["extract"] else None
    if name and file.path.exists():
        logger.info("%s is there already", file.path)
    elif not fetch(file.url, file.path, file.digest, limits, _progress(file.path.name)):
        logger.info("%s is there already, and whole", file.path)
    if not name:
        return [file.path]
    return extract(file.path, file.path.with_name(name), limits.most_bytes)


def _copy(file: _File, folder: Path) -> None:
    """Copies a file of a corpus, which has its name here or its path at the source.

    Raises FileNotFoundError where there is neither, and ValueError for another file, here or there.
    """
    places = [folder / file.path.name, folder / file.published]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise FileNotFoundError(
            f"{folder} has neither {' nor '.join(dict.fromkeys([places[0].name, file.published]))}."
        )
    for place in (found, file.path):
        if file.digest and place.exists() and (objection := file.digest.objection(place)):
            raise ValueError(f"{objection} {'Name another folder.' if place == found else 'Delete it first.'}")
    if not file.path.exists():
        file.path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(file.path) as part:
            shutil.copyfile(found, part)


def _progress(name: str, seconds: float = 5.0) -> Progress:
    """Logs how much of a file has come, how fast, and the time left, every so often."""
    size = came = 0
    begun = told = time.monotonic()

    def tell(new: int, total: int) -> None:
        nonlocal size, came, told
        # The first is what was there before.
        size, came = size + new, came + (new if size else 0)
        now = time.monotonic()
        if now - told < seconds or size >= total > 0:
            return
        told, rate = now, came / (now - begun)
        left = f", {round((total - size) / rate) // 60}:{round((total - size) / rate) % 60:02d} left" if total else ""
        whole = f" of {total / 1e6:,.1f}" if total else ""
        logger.info("%s: %.1f%s MB, %.2f MB a second%s", name, size / 1e6, whole, rate / 1e6, left)

    return tell
