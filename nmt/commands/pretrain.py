"""nmt.pretrain: from text without translations to the run directory of a pretrained encoder."""

from collections.abc import Mapping

from nmt.config.job import Job
from nmt.config.nodes import Config
from nmt.config.schema import EncoderSettings, PretrainSettings
from nmt.models import MaskedTransformer
from nmt.runs.directory import EncoderDirectory
from nmt.runs.record import print_run
from nmt.training.loop import fit, ready_to_score, writing
from nmt.training.masked_task import masked_score
from nmt.training.out_of_memory import halving_batches
from nmt.training.preparation import Prepared, prepare, resumes_run, run_folder
from nmt.training.pretraining import MaskedPretraining
from nmt.training.resume import printing_if_finished


def pretrain(job: Job[PretrainSettings]) -> None:
    """Pretrains, saves the best weights, and prints the run directory with loss and accuracy on the validation text.

    Raises Mistake before training if the configuration cannot be used.
    """
    run = EncoderDirectory(run_folder(job))
    resumes = resumes_run(job, run)

    def attempt(changes: Mapping[str, int]) -> None:
        prepared = prepare(job, run, MaskedPretraining(), resumes=resumes, changes=changes)
        result: Config = {}  # In a distributed run, only the leader gets one.
        with writing(prepared):
            result = fit(prepared)
            if result:
                score(prepared, result)
        if result:
            print_run(run)

    with printing_if_finished(run):
        halving_batches(attempt)


def score(prepared: Prepared[EncoderSettings, MaskedTransformer], result: Config) -> None:
    """Measures the best weights on the validation text and completes metrics.json.

    `result` is what training adds to metrics.json.
    """
    model = prepared.model.to(ready_to_score(prepared))
    scores = masked_score(model, prepared.data.validation, prepared.settings.batching.batch_tokens)
    prepared.complete(result, {"valid": {name: round(value, 4) for name, value in scores.items()}})
