"""A corpus of a few lines of varied text: it gets a vocabulary that fits when none was asked for."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from nmt.text import Tokenizer

PAIRS = """
The harbour was closed on Tuesday because of strong winds. | Cảng đã đóng cửa hôm thứ Ba vì gió mạnh.
Scientists found a small frog on one mountain. | Các nhà khoa học tìm thấy loài ếch nhỏ trên một ngọn núi.
My grandmother still bakes bread every Sunday morning. | Bà tôi vẫn nướng bánh mì mỗi sáng Chủ nhật.
Please send the invoice before the end of October. | Vui lòng gửi hóa đơn trước cuối tháng Mười.
Rice prices rose sharply after the flood in the delta. | Giá gạo tăng mạnh sau trận lụt ở đồng bằng.
The orchestra played Beethoven without a conductor. | Dàn nhạc chơi Beethoven mà không có nhạc trưởng.
He forgot his umbrella on the train to Hue. | Anh ấy để quên ô trên tàu đi Huế.
A new bridge will connect the two districts next year. | Một cây cầu mới sẽ nối hai quận vào năm tới.
Doctors recommend walking for thirty minutes a day. | Bác sĩ khuyên đi bộ ba mươi phút mỗi ngày.
The museum keeps bronze drums from the Dong Son culture. | Bảo tàng lưu giữ trống đồng của văn hóa Đông Sơn.
Her novel was translated into nine languages. | Tiểu thuyết của cô được dịch ra chín thứ tiếng.
We could not see the moon behind the clouds. | Chúng tôi không nhìn thấy mặt trăng sau những đám mây.
The company employs four hundred engineers in Da Nang. | Công ty thuê bốn trăm kỹ sư tại Đà Nẵng.
Children learn to swim faster when the water is warm. | Trẻ em học bơi nhanh hơn khi nước ấm.
Voters will choose a new mayor in the spring. | Cử tri sẽ chọn thị trưởng mới vào mùa xuân.
Turn left at the market and follow the river. | Rẽ trái ở chợ rồi đi dọc theo con sông.
"""
TRAINING = ["data=files", "data.train=[small]", "data.valid=held", "model.embedding_dim=8", "model.encoder_dim=8"]
TRAINING += ["model=luong", "model.decoder_dim=8", "tokenizer=bpe", "trainer.accelerator=cpu", "run_dir=run"]
WARNING = r"The training text supports at most ([\d,]+) pieces, so the vocabulary has \1 instead of 2,500"


@pytest.fixture
def small(corpus: Path) -> Path:
    """The folder of the commands, with 12 pairs for training and 4 for validation."""
    pairs = [line.split(" | ") for line in PAIRS.strip().splitlines()]
    for name, part in (("small", pairs[:12]), ("held", pairs[12:])):
        for language, lines in zip(("en", "vi"), zip(*part, strict=True), strict=True):
            (corpus / f"{name}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return corpus


def test_it_gets_a_vocabulary_that_fits(small: Path, command: Callable[..., object]) -> None:
    code, _, errors = command("train", *TRAINING, "trainer.max_steps=3")
    assert code == 0, errors
    [size] = (int(found.replace(",", "")) for found in re.findall(WARNING, errors))
    run = small / "run"
    assert yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))["tokenizer"]["size"] == size
    tokenizer = (run / "tokenizer.model").read_bytes()
    assert Tokenizer(tokenizer).size == size

    # The same command resumes it, and a run that was killed before its record was written learns the same again.
    code, _, errors = command("train", *TRAINING, "trainer.max_steps=5", "resume=true")
    assert code == 0, errors
    assert "resumed from last.ckpt" in errors
    code, output, errors = command("translate", "run_dir=run", "search.beam_size=1", text="We could see the river.\n")
    assert (code, output.count("\n")) == (0, 1), errors
    for file in (run / "metrics.json", run / "tokenizer.model", *run.glob("checkpoints/*")):
        file.unlink()
    code, _, errors = command("train", "run_dir=run", "resume=true")
    assert code == 0, errors
    assert (run / "tokenizer.model").read_bytes() == tokenizer


@pytest.mark.parametrize("asked", ["tokenizer.size=2500", "experiment=sample"])
def test_a_size_that_was_asked_for_is_refused(small: Path, command: Callable[..., object], asked: str) -> None:
    code, _, errors = command("train", *TRAINING, asked)
    [sentence] = [line for line in errors.splitlines() if "2500" in line]
    assert code == 2
    assert re.search(r"2500 is too large for this text; set tokenizer\.size to at most \d+, or to null", sentence)
    assert "Traceback" not in errors
