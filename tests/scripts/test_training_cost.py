"""What scripts/bench/training_cost.py counts; nothing here depends on the clock."""

import json
import random
from types import SimpleNamespace

import pytest
import torch

from nmt.data.batch import collate
from nmt.data.example import Example
from nmt.errors import Mistake
from nmt.kernels.vocabulary_loss import summed_nll
from scripts.bench import benchmark, training_cost

# Lightning's remarks on a short training.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*does not have many workers", "ignore:.*LeafSpec", "ignore:.*`limit_val_batches=0`"
)

Mark, Marks, WINDOW = training_cost.Mark, training_cost.Marks, training_cost.WINDOW

TINY = [
    "tokenizer.size=293",
    "batching.batch_tokens=101",
    "model.dim=12",
    "model.ffn_dim=19",
    "model.num_heads=2",
    "model.num_layers=1",
    "trainer.accelerator=cpu",
]


@pytest.fixture
def corpus(tmp_path) -> str:
    draw = random.Random(3)
    for language, words in (("en", ["one", "two", "three"]), ("vi", ["một", "hai", "ba"])):
        lines = [" ".join(draw.choices(words, k=draw.randint(2, 11))) + f" {n}" for n in range(211)]
        (tmp_path / f"train.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(tmp_path / "train")


def test_rates_are_those_of_whole_windows_after_the_warm_up():
    # Update n ends at second n squared, and each has 7 tokens.
    marks = [Mark(n**2, 7 * n) for n in range(3 + 2 * WINDOW + 1)]
    first, second = 7 * WINDOW / (8**2 - 3**2), 7 * WINDOW / (13**2 - 8**2)
    assert training_cost.window_rates(marks, warmup=3) == pytest.approx([first, second])
    assert training_cost.window_rates(marks[:-1], warmup=3) == pytest.approx([first])


def test_a_slow_start_does_not_count():
    marks = [Mark(0, 0), Mark(1000, 7), *(Mark(1000 + n, 7 + 11 * n) for n in range(1, WINDOW + 1))]
    assert training_cost.window_rates(marks, warmup=1) == [11]


def test_too_few_updates_are_refused():
    with pytest.raises(Mistake, match="leave fewer than 5 to measure"):
        training_cost.window_rates([Mark(n, n) for n in range(WINDOW + 2)], warmup=2)


def test_marks_count_eos_but_no_padding():
    # Source 2 + EOS and 1 + EOS, target 1 + EOS and 4 + EOS.
    batch = collate([Example(0, [5, 6], [7]), Example(1, [5], [7, 8, 9, 10])])
    marks = Marks()
    marks.on_train_start(SimpleNamespace(), SimpleNamespace())
    # An update on two batches.
    marks.on_train_batch_end(SimpleNamespace(global_step=1, max_steps=1), SimpleNamespace(), None, [batch, batch], 0)
    assert [mark.tokens for mark in marks.marks] == [0, 2 * 7]
    assert (marks.source_tokens, marks.target_tokens, marks.positions) == (2 * 5, 2 * 7, 2 * (2 * 3 + 2 * 5))


def test_operations_are_those_of_the_matrix_products():
    class Task(torch.nn.Module):
        device = torch.device("cpu")
        linear = torch.nn.Linear(5, 3, bias=False)

        def loss(self, batch):
            return self.linear(torch.ones(7, 5)).sum()

    # 7 x 5 times 5 x 3 forward, and the same for the weight's gradient; the input needs none.
    batch = collate([Example(0, [5, 6], [7])])
    assert training_cost.operations_per_token(Task(), [batch]) == 2 * (2 * 7 * 5 * 3) / batch.tokens


def test_the_loss_s_operations_count_though_they_write_into_memory_that_is_there():
    class Task(torch.nn.Module):
        device = torch.device("cpu")
        output = torch.nn.Linear(5, 11, bias=False)

        def loss(self, batch):
            features = torch.randn(*batch.target_output.shape, 5, requires_grad=True)
            return summed_nll(features, self.output, batch.target_output)

    batch = collate([Example(0, [5, 6], [7, 8])])
    assert training_cost.operations_per_token(Task(), [batch]) == 3 * (2 * 5 * 11)


@pytest.mark.parametrize(
    ("precision", "dtype"),
    [("32-true", torch.float32), ("bf16-mixed", torch.bfloat16), ("16-mixed", torch.float16), ("64", torch.float64)],
)
def test_the_machine_s_rate_is_that_of_the_training_s_own_numbers(precision, dtype):
    assert training_cost.matrix_type(precision) == dtype
    assert training_cost.matrix_rate(torch.device("cpu"), dtype, size=8, repeats=2) > 0


@pytest.mark.parametrize("model", ["transformer", "luong", "bahdanau"])
def test_the_recipe_fits_every_model_and_overrides_win(model):
    config = training_cost.configuration([f"model={model}", "model.dropout=0.3", "scorer=general"])
    assert config["model"]["dropout"] == 0.3
    assert config["model"]["_target_"].lower().endswith(model)
    assert config["scorer"]["_target_"].endswith("General")
    assert config["batching"]["batch_tokens"] == 4096


def test_a_model_without_sizes_is_refused():
    with pytest.raises(Mistake, match="No benchmark sizes for model=lung; available: transformer, luong, bahdanau"):
        training_cost.configuration(["model=lung"])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("subword_sampling=0.1", "subword_sampling is 0.1"),
        ("unicode_noise=0.02", "unicode_noise is 0.02"),
        ("data.concat_prob=0.5", "data.concat_prob is 0.5"),
        ("ema_decay=0.999", "ema_decay is 0.999"),
        ("context=concatenate", "context.sentences is 3"),
    ],
)
def test_what_the_benchmark_would_ignore_is_refused(override, message):
    with pytest.raises(Mistake, match=f"{message}, but this benchmark does not measure what that costs; it must be"):
        training_cost.configuration([override])


def test_measures_a_training(corpus, tmp_path, capsys):
    file = tmp_path / "speed.json"
    options = ["--data", corpus, "--updates", "6", "--warmup", "1", "--profile", "3", "--json", str(file)]
    benchmark.main(["train", *options, *TINY, f"cache_dir={tmp_path / 'cache'}"])
    record = json.loads(file.read_text(encoding="utf-8"))
    assert len(record["windows"]) == 1
    assert record["windows"][0] == record["target_tokens_per_second"] > 0
    assert record["source_tokens_per_second"] > 0
    assert 0 < record["padding"] < 1
    assert record["matrix_share"] > 0
    assert record["precision"] == "32-true"
    table = capsys.readouterr().out
    assert f"| parameters | {record['parameters']:,} |" in table
    assert "| target tokens/s, median |" in table
    assert "Self CPU" in table


def test_more_warm_up_than_updates_is_refused_at_the_start():
    with pytest.raises(Mistake, match="--updates 7 must be at least --warmup 3"):
        benchmark.main(["train", "--data", "nowhere", "--updates", "7", "--warmup", "3"])
