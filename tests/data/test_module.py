from itertools import islice

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

from nmt.data.corpus import read_pairs
from nmt.data.dataset import encode_pairs, training_dataset
from nmt.data.drawn_pairs import DrawnPairs
from nmt.data.filters import Filters
from nmt.data.module import StepData
from nmt.data.plan import plan
from nmt.errors import Mistake

MAX_STEPS, ACCUMULATE = 31, 2
# Python 3.12 and newer warn about forking loading processes after torch has started its threads.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


@pytest.fixture
def module(corpus, direction, pair, tmp_path):
    training, _ = training_dataset([corpus], direction, pair, Filters(), [], tmp_path / "cache")
    validation = encode_pairs(read_pairs(corpus, direction), pair)

    def module(workers=0, seed=3):
        return StepData(
            DrawnPairs(training),
            validation,
            seed=seed,
            batch_tokens=211,
            max_steps=MAX_STEPS,
            accumulate=ACCUMULATE,
            workers=workers,
        )

    return module


def same(ours, theirs) -> bool:
    return len(ours) == len(theirs) and all(
        a is b or torch.equal(a, b)
        for our_step, their_step in zip(ours, theirs, strict=True)
        for our_batch, their_batch in zip(our_step, their_step, strict=True)
        for a, b in zip(our_batch, their_batch, strict=True)
    )


def test_the_stream_is_the_plans_of_the_epochs_in_order(module):
    data = module()
    epochs = (plan(3, epoch, data.pairs.training.lengths, 211, ACCUMULATE) for epoch in range(99))
    expected = [batch.tolist() for steps in epochs for step in steps for batch in step[0]]
    loader = data.train_dataloader()
    steps = list(loader)
    assert len(loader) == len(steps) == MAX_STEPS
    assert {len(step) for step in steps} == {ACCUMULATE}
    received = [batch.indices.tolist() for step in steps for batch in step]
    assert received == expected[: len(received)]
    assert len(received) > sum(len(step[0]) for step in plan(3, 0, data.pairs.training.lengths, 211, ACCUMULATE))


@pytest.mark.parametrize(
    ("workers", "received"),
    [
        *((0, received) for received in (0, 1, 11, 23, MAX_STEPS)),
        (2, 1),
        (2, 23),
        (2, MAX_STEPS),
    ],
)
def test_a_restored_loader_continues_exactly(module, workers, received):
    whole = list(module().train_dataloader())
    interrupted = module(workers).train_dataloader()
    before = list(islice(interrupted, received))
    restored = module(workers).train_dataloader()
    restored.load_state_dict(interrupted.state_dict())
    assert restored.state_dict()["position"] in (0, received)
    assert same(before + list(restored), whole)


def test_a_loader_can_be_restored_again_and_again(module):
    whole, parts, state = list(module().train_dataloader()), [], {"position": 0}
    for _ in range(4):
        loader = module().train_dataloader()
        loader.load_state_dict(state)
        parts += list(islice(loader, 7))
        state = loader.state_dict()
    assert state == {"position": 28}
    assert same(parts, whole[:28])


def test_workers_make_no_difference(module):
    assert same(list(module(0).train_dataloader()), list(module(2).train_dataloader()))


def test_different_seeds_give_different_streams(module):
    assert not same(list(module().train_dataloader()), list(module(seed=4).train_dataloader()))


def test_loading_leaves_the_global_generator_alone(module):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    list(islice(module().train_dataloader(), 3))
    list(module().val_dataloader())
    assert torch.equal(torch.get_rng_state(), before)


class Processes:
    """A stub of the trainer of one of two processes."""

    world_size = 2

    def __init__(self, rank: int) -> None:
        self.global_rank = rank


def test_processes_share_every_step(module):
    ranks = [module(), module()]
    for rank, data in enumerate(ranks):
        data.trainer = Processes(rank)
    steps = plan(3, 0, ranks[0].pairs.training.lengths, 211, ACCUMULATE, world=2)
    received = [[[batch.indices.tolist() for batch in step] for step in data.train_dataloader()] for data in ranks]
    for number, step in enumerate(steps):
        for rank in range(2):
            assert received[rank][number] == [batch.tolist() for batch in step[rank]]


def test_validation_gives_every_pair_once(module):
    batches = list(module().val_dataloader())
    assert sorted(index for batch in batches for index in batch.indices.tolist()) == list(range(211))
    assert len(batches) > 1


def test_fewer_validation_pairs_than_processes_are_refused(module):
    data = module()
    data.validation, data.trainer = data.validation[:1], Processes(0)
    with pytest.raises(
        Mistake, match=r"The validation corpus has too few pairs \(1\) for 2 processes; .*lower trainer.devices"
    ):
        data.val_dataloader()


class Recorder(lightning.LightningModule):
    """A model of one weight that records the sentences it trains on."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.seen: list[list[int]] = []

    def training_step(self, batches, number):
        self.seen += [batch.indices.tolist() for batch in batches]
        return self.weight * sum(batch.tokens for batch in batches)

    def validation_step(self, batch, number):
        pass

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fit(data, model, steps, folder=None, checkpoint=None) -> None:
    saving = [ModelCheckpoint(folder, filename="last", save_on_train_epoch_end=False)] if folder else []
    trainer = lightning.Trainer(
        max_steps=steps,
        max_epochs=-1,
        val_check_interval=7,
        check_val_every_n_epoch=None,
        use_distributed_sampler=False,
        callbacks=saving,
        enable_checkpointing=bool(saving),
        logger=False,
        accelerator="cpu",
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, data, ckpt_path=checkpoint, weights_only=True)


@pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists and is not empty")
@pytest.mark.parametrize("workers", [0, 2])
def test_lightning_resumes_the_stream_in_mid_epoch(module, workers, tmp_path):
    whole, first, second = Recorder(), Recorder(), Recorder()
    folder = tmp_path / "checkpoints"
    fit(module(), whole, MAX_STEPS)
    fit(module(workers), first, 14, folder)
    fit(module(workers), second, MAX_STEPS, folder, folder / "last.ckpt")
    assert len(first.seen) == 14 * ACCUMULATE
    assert first.seen + second.seen == whole.seen
    assert torch.equal(second.weight, whole.weight)
