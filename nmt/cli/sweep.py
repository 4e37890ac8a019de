"""The jobs of a sweep: how each of them ended, and the table that tells it."""

import json
from collections.abc import Sequence
from pathlib import Path

from nmt.config.job import JobRecord
from nmt.files import write_json


class Records:
    """A folder that the jobs of a command write their records to, each from its own process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, record: JobRecord) -> None:
        """Replaces the job's record."""
        write_json(self.folder / f"{record.number}.json", record._asdict())

    def read(self) -> list[JobRecord]:
        """All records, in the order of the jobs."""
        found = [JobRecord(**json.loads(file.read_text(encoding="utf-8"))) for file in self.folder.glob("*.json")]
        return sorted(found, key=lambda record: record.number)


def settings(records: Sequence[JobRecord]) -> dict[str, list[str]]:
    """The number of each job, and those of its overrides that are not equal in all."""
    chosen = [dict(override.partition("=")[::2] for override in record.overrides) for record in records]
    keys = [key for key in (chosen[0] if chosen else ()) if len({choice.get(key) for choice in chosen}) > 1]
    columns = {key: [choice.get(key, "") for choice in chosen] for key in keys}
    return {"job": [str(record.number) for record in records], **columns}
