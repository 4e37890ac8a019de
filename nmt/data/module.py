"""Training data as one long stream of optimizer steps that can be interrupted and resumed at any step."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from typing import Any, cast

import lightning
import numpy as np
import torch
from torch.utils.data import DataLoader, Sampler

from nmt.data.batch import Batch, collate
from nmt.data.drawn_pairs import Draw, DrawnPairs
from nmt.data.example import Example
from nmt.data.plan import Epoch, plan, plan_epoch
from nmt.errors import Mistake

Collate = Callable[[Sequence[Example]], Any]
"""collate(examples) makes a batch from the examples."""


class Stream(Sampler[list[Draw]]):
    """The batches of `steps` optimizer steps of one rank, epoch after epoch; iteration skips the first `start` steps.

    `plan_epoch(epoch)` returns the plan of an epoch; see nmt.data.plan.
    """

    def __init__(self, plan_epoch: Callable[[int], Epoch], steps: int, rank: int = 0) -> None:
        self.plan_epoch, self.steps, self.rank = plan_epoch, steps, rank
        self.start = 0

    def __iter__(self) -> Iterator[list[Draw]]:
        for number, epoch, step in islice(self._steps(), self.start, self.steps):
            for batch in step:
                partners = epoch.partners[batch].tolist()
                yield [Draw(number, *pair) for pair in zip(batch.tolist(), partners, strict=True)]

    def _steps(self) -> Iterator[tuple[int, Epoch, list[np.ndarray]]]:
        for number in count():
            epoch = self.plan_epoch(number)
            for ranks in epoch.steps:
                yield number, epoch, ranks[self.rank]


class ResumableLoader(DataLoader[Example]):
    """Yields the optimizer steps of a Stream, each as the list of its `accumulate` batches.

    Its state is the number of steps that training has received. Batches that workers have prepared in advance do not
    count, so a restored loader continues with the next step. Lightning saves and restores the state of a loader that
    has state_dict and load_state_dict.
    """

    def __init__(
        self, data: DrawnPairs, stream: Stream, accumulate: int, workers: int = 0, collate: Collate = collate
    ) -> None:
        # Without its own generator, a DataLoader draws from the global one, whose state resuming would then change.
        super().__init__(
            data, batch_sampler=stream, collate_fn=collate, num_workers=workers, generator=torch.Generator()
        )
        self.stream, self.accumulate = stream, accumulate
        self.position = 0

    # Without a length, Lightning fetches one step ahead: a checkpoint would then count a step that was not trained.
    def __len__(self) -> int:
        return self.stream.steps

    def __iter__(self) -> Iterator[list[Batch]]:  # type: ignore[override]
        self.position = self.stream.start
        batches = super().__iter__()
        while step := list(islice(batches, self.accumulate)):
            self.position += 1
            yield step

    def state_dict(self) -> dict[str, int]:
        return {"position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.stream.start = state["position"]


class StepData(lightning.LightningDataModule):
    """Training data as a stream of `max_steps` steps of `accumulate` batches per process, and validation batches.

    pairs: the drawn training pairs; validation: the validation pairs (see `encode_pairs`); seed: determines the order;
    batch_tokens: maximum of rows x longest side of a batch, including padding and EOS; max_steps: number of optimizer
    steps; accumulate: batches per step; workers: number of data-loading processes; collate: makes a batch from
    examples.
    The trainer needs use_distributed_sampler=False and max_epochs=-1.
    """

    def __init__(
        self,
        pairs: DrawnPairs,
        validation: Sequence[Example],
        *,
        seed: int,
        batch_tokens: int,
        max_steps: int,
        accumulate: int = 1,
        workers: int = 0,
        collate: Collate = collate,
    ) -> None:
        super().__init__()
        self.pairs, self.validation = pairs, validation
        self.batch_tokens = batch_tokens
        self.max_steps, self.accumulate = max_steps, accumulate
        self.workers, self.collate = workers, collate
        self._plan = partial(
            plan_epoch,
            seed,
            lengths=pairs.lengths,
            batch_tokens=batch_tokens,
            accumulate=accumulate,
            mixing=pairs.mixing,
        )

    def train_dataloader(self) -> ResumableLoader:
        """The training stream of this process. Raises whatever `plan` raises."""
        rank, world = self._process()
        stream = Stream(partial(self._plan, world=world), self.max_steps, rank)
        return ResumableLoader(
            self.pairs, stream, accumulate=self.accumulate, workers=self.workers, collate=self.collate
        )

    def val_dataloader(self) -> DataLoader[Example]:
        """This process's share of the validation pairs, batched by length.

        The batch budget is `batch_tokens`, or the length of the longest pair if that is larger. Raises Mistake if
        there are fewer pairs than processes.
        """
        rank, world = self._process()
        lengths = np.array([example.lengths for example in self.validation])
        try:
            # Neither the seed of the run nor the epoch matters: every validation has the same batches.
            budget = max(self.batch_tokens, int(lengths.max()))
            steps = plan(seed=0, epoch=0, lengths=lengths, batch_tokens=budget, world=world)
        except Mistake as error:
            raise Mistake(
                f"The validation corpus has too few pairs ({len(self.validation)}) for {world} processes; "
                "use a larger one, or lower trainer.devices."
            ) from error
        batches = [batch.tolist() for step in steps for batch in step[rank]]
        data = cast(torch.utils.data.Dataset[Example], self.validation)
        return DataLoader(data, batch_sampler=batches, collate_fn=self.collate, generator=torch.Generator())

    def _process(self) -> tuple[int, int]:
        trainer = self.trainer
        return (0, 1) if trainer is None else (trainer.global_rank, trainer.world_size)
