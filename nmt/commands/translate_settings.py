"""The settings of nmt.translate."""

import os
import re
import shlex
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import model_validator as check

from nmt.config.fields import Positive, Precision, SourceTokens, Text, TextOrTexts, expects
from nmt.config.nodes import Node
from nmt.config.shared_settings import SearchingSettings
from nmt.errors import Mistake


class TranslateSettings(SearchingSettings):
    NOT_KEYS: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("source", "out"), "write < in.en > out.vi for one file, or input=FILES output=FOLDER for many"
    )

    search: Node
    precision: Literal["auto", Precision]
    cache_dir: Text
    run_dir: TextOrTexts
    input: Annotated[
        TextOrTexts | None, expects("a file, a list such as [A,B], a pattern such as 'parts/*.en', or null")
    ]
    output: Text | None
    shard_lines: Positive
    shard: Text | None
    cluster: Literal["ray"] | None
    cluster_processes: Positive | None
    cluster_address: Text | None
    format: Literal["text", "tsv", "jsonl"]
    prefixes: Text | None
    dictionary: Text | None
    document: bool
    minimum_bayes_risk: bool
    batch_tokens: Positive
    max_source_tokens: SourceTokens
    read_ahead: Positive

    @classmethod
    def not_a_setting(cls, argument: str) -> str:
        if os.path.isfile(argument):  # Path refuses a name that is too long
            return f"'{argument}' is a file, but nmt.translate reads standard input. Write < {shlex.quote(argument)}."
        filtered = "echo TEXT | python -m nmt.translate run_dir=RUN"
        return f"Cannot read '{argument}'. Write key=value; to translate a text, write {filtered}."

    @check(mode="after")
    def check_files(self) -> "TranslateSettings":
        if self.run_dir == []:
            raise Mistake("run_dir is an empty list; name at least one folder.")
        if (self.input is None) != (self.output is None):
            if self.input is None:
                raise Mistake(f"output={self.output} is only for files: add input=FILE, or use '> FILE'.")
            raise Mistake(
                "input is given without output: name a folder for the translations with output=FOLDER, or use "
                "'< FILE > FILE'."
            )
        if self.input == []:
            raise Mistake("input is an empty list; name at least one file.")
        if self.shard is not None and self.input is None:
            raise Mistake(f"shard={self.shard} is only for files: add input=FILE output=FOLDER, or leave it out.")
        if self.cluster is None:
            for key in ("cluster_processes", "cluster_address"):
                if (value := getattr(self, key)) is not None:
                    raise Mistake(f"{key}={value} is only for a cluster: add cluster=ray, or leave it out.")
        elif self.input is None:
            raise Mistake(f"cluster={self.cluster} is only for files: add input=FILE output=FOLDER, or leave it out.")
        elif self.shard is not None:
            raise Mistake(f"cluster={self.cluster} divides the work itself: leave out shard={self.shard}.")
        elif self.workers > 1:
            raise Mistake(
                f"cluster={self.cluster} starts the processes itself: write cluster_processes={self.workers} instead "
                f"of workers={self.workers}."
            )
        if self.precision == "auto":
            if self.cluster or self.shard:
                raise Mistake(
                    "precision=auto measures one machine, but the processes that share the work must all use the same "
                    "precision: use precision=float32, bfloat16 or int8."
                )
            for key in ("document", "minimum_bayes_risk"):
                if getattr(self, key):
                    raise Mistake(
                        f"precision=auto does not measure translation with {key}=true: use precision=float32, "
                        "bfloat16 or int8."
                    )
        if self.prefixes is not None and self.input is not None:
            raise Mistake("prefixes is only for standard input: leave out input and output, and use '< FILE > FILE'.")
        if self.dictionary is not None and self.verbatim:
            raise Mistake("verbatim=true reads every line as it is, without a dictionary: leave out one of them.")
        if self.shard is not None:
            self.share  # noqa: B018  raises Mistake if it is malformed
        return self

    @property
    def share(self) -> tuple[int, int]:
        """The two numbers of `shard`: the share of this process, counted from 1, and the number of processes."""
        if self.shard is None:
            return 1, 1
        match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", self.shard)
        number, of = map(int, match.groups()) if match else (0, 0)
        if not 1 <= number <= of:
            raise Mistake(
                f"shard is {self.shard}; it must be I/N, the I-th of N processes, counted from 1, such as 3/8. Use "
                "seq 8 for GNU parallel, and --array=1-8 for SLURM."
            )
        return number, of
