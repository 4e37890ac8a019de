"""nmt.pretrain: from text without translations to the run directory of a pretrained encoder."""

import os
from functools import partial
from pathlib import Path

from nmt.config.job import Job
from nmt.config.nodes import Config
from nmt.config.schema import EncoderSettings, PretrainSettings
from nmt.models import MaskedTransformer
from nmt.models.embeddings import with_plain_weights
from nmt.runs.directory import EncoderDirectory
from nmt.runs.load import choose_device
from nmt.runs.record import peak_memory_mib
from nmt.training.loop import run_training
from nmt.training.masked_task import masked_score
from nmt.training.prepared import Prepared
from nmt.training.pretraining import begin_pretraining, resume_pretraining


def pretrain(job: Job[PretrainSettings]) -> None:
    """Pretrains, saves the best weights, and prints the run directory with loss and accuracy on the validation text.

    Raises Mistake before training if the configuration cannot be used.
    """
    run = EncoderDirectory(Path(job.settings.run_dir if job.sweep_dir is None else os.path.relpath(job.sweep_dir)))
    prepare = partial(resume_pretraining if job.settings.resume else begin_pretraining, job, run)
    run_training(run, job.settings.cache_dir, prepare, partial(measure, in_sweep=job.sweep_dir is not None))


def measure(prepared: Prepared[EncoderSettings, MaskedTransformer], found: Config, in_sweep: bool) -> None:
    """Measures the best weights on the validation text, completes metrics.json and prints the run."""
    memory = None if in_sweep else peak_memory_mib()
    model = prepared.model.eval()
    with_plain_weights(model)
    model.to(choose_device("cpu" if prepared.settings.trainer.accelerator == "cpu" else "auto"))
    score = masked_score(model, prepared.data.validation, prepared.settings.batching.batch_tokens)
    scores = {"valid": {name: round(value, 4) for name, value in score.items()}}
    prepared.run.write_metrics(
        {**prepared.record, **found, "finished": True, "scores": scores, "peak_memory_mib": memory}
    )
    print(prepared.run.path)
    print(f"valid loss {score['loss']:.3f}, accuracy {score['accuracy']:.3f}")
