"""nmt.download: corpora from the web or from a folder, verified."""

import logging
import shutil
import time
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from nmt.commands.download_settings import DownloadSettings
from nmt.config.job import Job
from nmt.config.messages import unknown
from nmt.config.nodes import CONFIGS, read_yaml
from nmt.data.archives import extract, stem
from nmt.data.fetch import Digest, DownloadFailed, Limits, ReportBytes, checked_address, fetch
from nmt.data.hub import checked_name, stored_name, write_splits
from nmt.errors import CheckFailed, Mistake, printable
from nmt.files import atomic_write
from nmt.paths import folder_to_write

logger = logging.getLogger(__name__)

# The prefix for the name of a dataset on the Hugging Face Hub.
_HUB = "hub:"


class _File(NamedTuple):
    url: str
    path: Path
    published: str
    """The path of the file at its source."""
    digest: Digest | None
    folder: Path | None
    """The folder into which an archive is extracted; None for any other file."""


def download(job: Job[DownloadSettings]) -> None:
    """Downloads the files and prints their paths; the license and citation of each known corpus are logged.

    Raises Mistake for an unknown corpus or a URL that is not https, if a file is missing from the
    folder `from`, and CheckFailed if a download fails.
    """
    settings = job.settings
    known = {path.stem: path for path in (CONFIGS / "corpus").glob("*.yaml")}
    if not settings.what:
        raise Mistake(f"Nothing to download; name {' or '.join(sorted(known))}, hub:OWNER/SET, or an https:// address.")
    out, copies = Path(settings.out), None if settings.copies is None else Path(settings.copies)
    if copies is not None and not copies.is_dir():
        raise Mistake(f"from is {copies}, which is not a folder; name the folder that contains the files.")
    # Check every name before the first download.
    hub = [checked_name(name.removeprefix(_HUB)) for name in settings.what if name.startswith(_HUB)]
    names = [name for name in settings.what if not name.startswith(_HUB)]
    plans = [_plan(name, out, known, settings.extract) for name in names]
    _check_apart(plans)
    if copies is not None and (other := [name for name in [*hub, *names] if name not in known]):
        raise Mistake(f"from={copies} works only for {' and '.join(sorted(known))}, not for {other[0]}; leave it out.")
    if hub or not all((file.folder or file.path).exists() for files in plans for file in files):
        folder_to_write("out", out)
    limits = Limits(int(settings.max_gib * 2**30))
    try:
        for name, files in zip(names, plans, strict=True):
            if name in known:
                corpus = read_yaml(known[name])
                logger.info("%s. License: %s. Cite: %s.", name, corpus["license"], corpus["citation"])
            for file in files:
                for path in _fetched(file, limits) if copies is None else [_copied(file, copies)]:
                    print(path)
        for name in hub:
            folder = out / "hub" / stored_name(name) / (settings.hub_config or "")
            for path in write_splits(name, settings.hub_config, settings.languages, folder):
                print(path)
    except DownloadFailed as error:
        raise CheckFailed(str(error)) from error


def _plan(name: str, out: Path, known: dict[str, Path], extracted: bool) -> list[_File]:
    """The files of a known corpus, or the file at an address."""
    if "://" in name:
        url = checked_address(name)
        file = unquote(PurePosixPath(urlsplit(name).path).name)
        if not file or file.startswith(".") or any(sign in file for sign in "/\\:\n") or file != printable(file):
            raise Mistake(
                f"{name} does not end with the name of a file that can be printed; use the address of a file."
            )
        path, without_suffix = out / file, stem(file)
        return [_File(url, path, file, None, path.with_name(without_suffix) if extracted and without_suffix else None)]
    if name not in known:
        raise Mistake(f"{unknown('corpus', name, known)} An address begins with https://.")
    corpus = read_yaml(known[name])
    files = []
    for local, facts in corpus["files"].items():
        [digest] = [Digest(kind, facts[kind]) for kind in ("sha256", "git_sha1") if kind in facts]
        published = facts.get("path", local)
        url = facts.get("url") or urljoin(corpus["url"], published)
        files.append(_File(url, out / name / local, published, digest, None))
    return files


def _check_apart(plans: list[list[_File]]) -> None:
    """Raises Mistake if two files would be written to the same path."""
    urls: dict[str, str] = {}
    for file in (file for files in plans for file in files):
        # An archive takes two paths: its own and that of its extracted files.
        for path in {str(file.path), str(file.path.with_name(stem(file.path.name) or file.path.name))}:
            if (other := urls.setdefault(path, file.url)) != file.url:
                raise Mistake(
                    f"{other} and {file.url} would both be written to {path}; download them with separate commands, "
                    "each with its own out=."
                )


def _fetched(file: _File, limits: Limits) -> list[Path]:
    """Downloads a file and extracts an archive, unless that has already been done. Returns the resulting paths."""
    if file.folder and file.folder.is_dir():
        logger.info("%s already exists", file.folder)
        return sorted(path for path in file.folder.rglob("*") if path.is_file())
    if not fetch(file.url, file.path, file.digest, limits, _progress(file.path.name)):
        logger.info("%s already exists", file.path)
    return extract(file.path, file.folder, limits.most_bytes) if file.folder else [file.path]


def _copied(file: _File, folder: Path) -> Path:
    """Copies a file, unless it exists, from a folder that has it under its local name or its path at the source.

    Raises Mistake if the folder has neither, or if a file differs from the published one.
    """
    candidates = [folder / file.path.name, folder / file.published]
    copy = next((path for path in candidates if path.is_file()), None)
    if copy is None:
        names = " and no ".join(dict.fromkeys([file.path.name, file.published]))
        raise Mistake(f"{folder} has no {names}; name the folder that contains the files of this corpus.")
    for path in (copy, file.path):
        if file.digest and path.exists() and (objection := file.digest.objection(path)):
            raise Mistake(f"{objection} {'Choose another folder.' if path == copy else 'Delete it first.'}")
    if not file.path.exists():
        file.path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(file.path) as part:
            shutil.copyfile(copy, part)
            if file.digest and (objection := file.digest.objection(part)):
                raise Mistake(f"{objection} {copy} changed while it was copied; run the command again.")
    return file.path


def _progress(name: str, seconds: float = 5.0) -> ReportBytes:
    """A function that logs the size, rate and remaining time of a download, at most once every `seconds`."""
    begun: list[tuple[float, int]] = []
    logged = time.monotonic()

    def report(size: int, total: int) -> None:
        nonlocal logged
        now = time.monotonic()
        if not begun:
            begun.append((now, size))
        if now - logged < seconds or size == total:
            return
        logged = now
        start, before = begun[0]
        rate = (size - before) / max(now - start, 1e-9)
        whole = f" of {total / 1e6:,.1f}" if total else ""
        left = f", {round((total - size) / rate)} s left" if total and rate > 0 else ""
        logger.info("%s: %.1f%s MB, %.2f MB a second%s", name, size / 1e6, whole, rate / 1e6, left)

    return report
