"""A run directory: what training leaves behind, complete and portable, and whether a folder is one."""

import json
import shutil
from pathlib import Path
from typing import Any

import yaml

from nmt.config.direction import Direction
from nmt.files import PART, write_bytes, write_json
from nmt.text import Tokenizer, TokenizerPair

_CONFIG, _WEIGHTS, _METRICS, _JOINT = "config.yaml", "model.safetensors", "metrics.json", "tokenizer.model"
PARTS = ("model", "search", "direction", "data")
_FOLDERS = ("checkpoints", "logs", "evaluation", "probes")


class RunDirectory:
    """config.yaml, tokenizer.model (or one a language), model.safetensors, metrics.json, logs/ and checkpoints/."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.weights = path / _WEIGHTS
        self.checkpoints = path / "checkpoints"
        self.last = self.checkpoints / "last.ckpt"  # that of nmt.training.checkpoints
        self.nonfinite = path / "nonfinite.json"
        self.logs = path / "logs"

    @property
    def started(self) -> bool:
        """Whether a training has been started here."""
        return (self.path / _CONFIG).is_file()

    @property
    def finished(self) -> bool:
        """Whether training has come to its end: the best weights are saved and scored."""
        return self.started and self.weights.is_file() and self.metrics().get("finished", False)

    def state(self) -> tuple[bytes, ...]:
        """What the folder says of its run now; other than before when a training has written to it."""
        files = (self.path / name for name in (_CONFIG, _METRICS))
        return tuple(file.read_bytes() for file in files if file.is_file())

    def require_finished(self) -> None:
        """Raises FileNotFoundError or ValueError when this is no run directory or its training has not ended."""
        if not self.path.is_dir():
            raise FileNotFoundError(f"There is no folder {self.path}; run_dir is the folder that nmt.train printed.")
        if not self.started:
            raise FileNotFoundError(f"{self.path} is not a run directory: it has no {_CONFIG}.")
        if not self.finished:
            raise ValueError(
                f"The training in {self.path} has not ended; end it with "
                f"'python -m nmt.train run_dir={self.path} resume=true'."
            )

    def require_free(self, overwrite: bool) -> None:
        """Raises FileExistsError when a new run would overwrite something; an old run may be, if asked for."""
        if self.started and not overwrite:
            state = "a finished run" if self.finished else "a run that has not ended (resume=true goes on with it)"
            raise FileExistsError(f"{self.path} holds {state}; choose another run_dir, or overwrite=true to delete it.")
        if not self.started and self.path.exists() and not self._is_free():
            raise FileExistsError(f"{self.path} exists and is not a run directory; choose another run_dir.")

    def _is_free(self) -> bool:
        """Whether the folder is empty, but for the first file of a run that was killed while it was written."""
        return self.path.is_dir() and all(path.name == _CONFIG + PART for path in self.path.iterdir())

    def clear(self) -> None:
        """Deletes the files of a run, and no others."""
        for folder in _FOLDERS:
            shutil.rmtree(self.path / folder, ignore_errors=True)
        tokenizers = [path.name for path in self.path.glob("tokenizer.*.model")]
        for name in (self.weights.name, self.nonfinite.name, _METRICS, _JOINT, *tokenizers, _CONFIG):
            for file in (self.path / name, self.path / f"{name}{PART}"):
                file.unlink(missing_ok=True)

    def write_config(self, config: dict[str, Any]) -> None:
        """Writes the configuration; from then on the run counts as started."""
        text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
        write_bytes(self.path / _CONFIG, text.encode())

    def config(self) -> dict[str, Any]:
        """The stored configuration. Raises ValueError when the file is not readable or not that of a training."""
        file = self.path / _CONFIG
        try:
            config = yaml.safe_load(file.read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"{file} is damaged: it is not YAML.") from error
        missing = [part for part in PARTS if not isinstance(config, dict) or not config.get(part)]
        if missing:
            raise ValueError(
                f"{file} is not the configuration of a training: it lacks {', '.join(missing)}; "
                "run_dir is the folder that nmt.train printed."
            )
        return config

    def write_tokenizers(self, tokenizers: TokenizerPair, direction: Direction) -> None:
        """Writes tokenizer.model, or tokenizer.LANGUAGE.model for each side."""
        if tokenizers.joint:
            write_bytes(self.path / _JOINT, tokenizers.source.model)
        else:
            write_bytes(self._tokenizer_file(direction.source), tokenizers.source.model)
            write_bytes(self._tokenizer_file(direction.target), tokenizers.target.model)

    def tokenizers(self, direction: Direction) -> TokenizerPair:
        """The stored tokenizers; one object on both sides when they are joint."""
        if (self.path / _JOINT).is_file():
            joint = Tokenizer.load(self.path / _JOINT)
            return TokenizerPair(joint, joint)
        sides = (direction.source, direction.target)
        return TokenizerPair(*(Tokenizer.load(self._tokenizer_file(side)) for side in sides))

    def write_metrics(self, metrics: dict[str, Any]) -> None:
        """Replaces metrics.json."""
        write_json(self.path / _METRICS, metrics)

    def metrics(self) -> dict[str, Any]:
        """What metrics.json holds; empty before it is written. Raises ValueError when it is not a run's."""
        file = self.path / _METRICS
        if not file.is_file():
            return {}
        try:
            metrics = json.loads(file.read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"{file} is damaged: it is not JSON.") from error
        if not isinstance(metrics, dict) or not isinstance(metrics.get("finished"), bool):
            raise ValueError(f"{file} is not the record of a training: it does not say whether that is finished.")
        return metrics

    def _tokenizer_file(self, language: str) -> Path:
        return self.path / f"tokenizer.{language}.model"
