"""The settings of nmt.compare."""

from typing import Annotated

from pydantic import model_validator as check

from nmt.config.fields import Device, Keys, Text, TextOrTexts, expects
from nmt.config.shared_settings import check_named_once
from nmt.errors import Mistake


class CompareSettings(Keys):
    run_dirs: Annotated[list[Text], expects("a list, as in 'run_dirs=[A,B]'")]
    split: Text
    outputs: Annotated[list[Text], expects("a list, as in 'outputs=[a.vi,b.vi]'")]
    reference: Annotated[TextOrTexts | None, expects("a file, a list of files such as [A,B], or null")]
    out: Text
    device: Device

    @check(mode="after")
    def check_systems(self) -> "CompareSettings":
        if not self.run_dirs and not self.outputs:
            raise Mistake(
                "Set 'run_dirs=[A,B]' to compare runs, 'outputs=[a.vi,b.vi]' and reference=FILE to compare files of "
                "translations, or 'run_dirs=[A]' and 'outputs=[b.vi]' to compare both on a split of the runs' data."
            )
        check_named_once(self.run_dirs)
        if self.run_dirs and self.reference not in (None, []):
            raise Mistake(
                "reference is for outputs alone; with run_dirs, the references are those of split: leave out "
                "reference=. To compare runs on your own test set, translate it with nmt.translate, set outputs= and "
                "reference=, and leave out run_dirs=."
            )
        if not self.run_dirs and self.reference in (None, []):
            raise Mistake("outputs need a reference: set reference=FILE, or 'reference=[A,B]' for several.")
        return self
