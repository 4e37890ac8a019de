"""nmt.pretrain: from text without translations to the run directory of a pretrained encoder."""

import os
from pathlib import Path

from nmt.config.job import Job
from nmt.config.nodes import Config
from nmt.config.schema import EncoderSettings, PretrainSettings
from nmt.models import MaskedTransformer
from nmt.models.embeddings import with_plain_weights
from nmt.runs.directory import EncoderDirectory
from nmt.runs.load import choose_device
from nmt.runs.record import peak_memory_mib
from nmt.training.loop import fit, writing
from nmt.training.masked_task import masked_score
from nmt.training.out_of_memory import BatchTooLarge
from nmt.training.preparation import Prepared, prepare
from nmt.training.pretraining import MaskedPretraining


def pretrain(job: Job[PretrainSettings]) -> None:
    """Pretrains, saves the best weights, and prints the run directory with loss and accuracy on the validation text.

    Raises Mistake before training if the configuration cannot be used.
    """
    run = EncoderDirectory(Path(job.settings.run_dir if job.sweep_dir is None else os.path.relpath(job.sweep_dir)))
    # If the device runs out of memory in the first attempt, `halved` is filled for a second one.
    halved: dict[str, int] = {}
    for changes in ({}, halved):
        prepared = prepare(job, run, MaskedPretraining(), changes=changes)
        try:
            with writing(prepared):
                result = fit(prepared)
                if result:  # In a distributed run, only the leader has one.
                    measure(prepared, result, in_sweep=job.sweep_dir is not None)
            return
        except BatchTooLarge as error:
            halved.update(error.halved(prepared))
        # Outside the except block: until it ends, the frames of the error hold the device's memory too.
        del prepared


def measure(prepared: Prepared[EncoderSettings, MaskedTransformer], result: Config, in_sweep: bool) -> None:
    """Measures the best weights on the validation text, completes metrics.json and prints the run.

    `result` is what training adds to metrics.json.
    """
    memory = None if in_sweep else peak_memory_mib()
    model = prepared.model.eval()
    with_plain_weights(model)
    model.to(choose_device("cpu" if prepared.settings.trainer.accelerator == "cpu" else "auto"))
    score = masked_score(model, prepared.data.validation, prepared.settings.batching.batch_tokens)
    scores = {"valid": {name: round(value, 4) for name, value in score.items()}}
    prepared.run.write_metrics(
        {**prepared.record, **result, "finished": True, "scores": scores, "peak_memory_mib": memory}
    )
    print(prepared.run.path)
    print(f"valid loss {score['loss']:.3f}, accuracy {score['accuracy']:.3f}")
