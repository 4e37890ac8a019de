"""What TensorBoard shows of a training run besides numbers."""

from io import BytesIO
from pathlib import Path

from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def test_tensorboard_gets_the_probes_as_pictures_and_translations_as_text_at_each_validation(run: str) -> None:
    events = EventAccumulator(str(next(Path(run).glob("logs/version_*")))).Reload()
    pictures = events.Tags()["images"]
    assert len(pictures) == 3
    assert all(name.startswith("cross attention/line ") for name in pictures)
    for name in pictures:
        entries = events.Images(name)
        assert [entry.step for entry in entries] == [2, 4]
        first, last = (Image.open(BytesIO(entry.encoded_image_string)) for entry in entries)
        assert min(first.size) > 100, "the map has labels"
        assert len(first.getcolors(maxcolors=100_000)) > 2, "the map is not blank"
        assert first.tobytes() != last.tobytes(), "another step has other weights"
    [text] = [tag for tag in events.Tags()["tensors"] if tag.startswith("translations")]
    tables = [entry.tensor_proto.string_val[0].decode() for entry in events.Tensors(text)]
    assert len(tables) == 2
    line = Path("valid.en").read_text(encoding="utf-8").splitlines()[0]
    assert all(table.startswith("| source | reference | hypothesis |") and line in table for table in tables)
