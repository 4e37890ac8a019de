"""Exports a Transformer as a package for Argos Translate and LibreTranslate: a zip file with a CTranslate2 model."""

import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nmt.config.direction import LANGUAGES
from nmt.exports.ctranslate2 import write_ctranslate2
from nmt.exports.folding import require_plain_transformer
from nmt.exports.model_card import model_card
from nmt.exports.sentence_splitter import sentence_splitter
from nmt.files import write_bytes, write_json
from nmt.runs.load import LoadedRun

VERSION = "1.0"
"""The version number given to every package."""
ARGOS_VERSION = "1.11"
"""The version of Argos Translate with which the packages were tested, and whose source code they follow."""


def write_argos(run: LoadedRun, folder: Path, quantization: str) -> Path:
    """Writes translate-SOURCE_TARGET.argosmodel to an existing folder; returns the path of that file.

    Argos Translate joins target pieces with the source's SentencePiece model. That works for any pieces, so a run with
    separate vocabularies can be exported too. Raises Mistake for a model that CTranslate2 does not support.
    """
    require_plain_transformer(run, "argos")
    direction = run.direction
    name = f"translate-{direction.source}_{direction.target}"
    with tempfile.TemporaryDirectory(dir=folder) as parent:
        package = Path(parent) / f"{name}-{VERSION.replace('.', '_')}"
        model = package / "model"
        model.mkdir(parents=True)
        write_ctranslate2(run, model, quantization)
        for tokenizer in model.glob("tokenizer.*"):
            tokenizer.unlink()  # Argos reads the file below instead
        write_bytes(package / "sentencepiece.model", run.tokenizers.source.model)
        (package / "minisbd").mkdir()
        write_bytes(package / "minisbd" / f"{direction.source}.onnx", sentence_splitter(direction.source))
        metadata = {
            "type": "translate",
            "package_version": VERSION,
            "argos_version": ARGOS_VERSION,
            "from_code": direction.source,
            "from_name": LANGUAGES.get(direction.source, direction.source),
            "to_code": direction.target,
            "to_name": LANGUAGES.get(direction.target, direction.target),
            "links": [],
        }
        write_json(package / "metadata.json", metadata)
        use = _USE.format(file=f"{name}.argosmodel", source=direction.source, target=direction.target)
        write_bytes(package / "README.md", model_card(run, {}, use, _DIFFERENCES).encode())
        with zipfile.ZipFile(folder / f"{name}.argosmodel", "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(path for path in package.rglob("*") if path.is_file()):
                archive.write(file, file.relative_to(parent))
    return folder / f"{name}.argosmodel"


@contextmanager
def unpacked_model(folder: Path) -> Iterator[Path]:
    """The CTranslate2 model in a package that `write_argos` wrote, unpacked to a temporary folder beside it."""
    [package] = folder.glob("*.argosmodel")
    with tempfile.TemporaryDirectory(dir=folder) as unpacked, zipfile.ZipFile(package) as archive:
        archive.extractall(unpacked)
        [model] = Path(unpacked).glob("*/model")
        yield model


_USE = """\
```python
import argostranslate.package
import argostranslate.translate

argostranslate.package.install_from_path("{file}")
print(argostranslate.translate.translate("One sentence.", "{source}", "{target}"))
```
"""

_DIFFERENCES = [
    "Normalize the text to NFC with single plain spaces and without invisible characters before you translate it; "
    "`nmt.translate` does this itself.",
    "Argos Translate stops searching when the number of finished translations reaches the beam size. A longer and more "
    "probable translation that is not finished by then is lost, so the result may lack a clause. `nmt.translate` "
    "continues the search.",
    "Argos Translate splits a text into sentences, here with the rules in `minisbd/`: a sentence ends after `.`, `!`, "
    "`?` or `…` and up to two closing quotes or brackets, if a space follows and the character after it is not a "
    "lowercase letter. Without that folder, Argos downloads MiniSBD's own model for the language.",
    "Argos Translate searches with a beam of 4 hypotheses, and computes in 8-bit integers on most processors. To "
    "change this, set `ARGOS_BEAM_SIZE` and `ARGOS_COMPUTE_TYPE=float32` in the environment. Its length penalty is "
    "always |Y|^0.2.",
    "Argos Translate replaces each underscore in a translation with a space.",
]
