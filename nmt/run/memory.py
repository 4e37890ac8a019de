"""A device whose memory is full: half the tokens a batch and twice the batches a step, once."""

from nmt.run.compose import Config
from nmt.run.exits import CheckFailed


def halved(config: Config) -> tuple[Config, str]:
    """The configuration of about the same steps in less memory, and the settings that make it."""
    batching, trainer = config["batching"], config["trainer"]
    tokens, accumulate = batching["batch_tokens"] // 2, trainer["accumulate_grad_batches"] * 2
    smaller = config | {
        "batching": batching | {"batch_tokens": tokens},
        "trainer": trainer | {"accumulate_grad_batches": accumulate},
    }
    return smaller, f"batching.batch_tokens={tokens} trainer.accumulate_grad_batches={accumulate}"


def out_of_memory(config: Config, halved_before: bool) -> CheckFailed:
    """The failure of a training that cannot begin again by itself, with what a person can do."""
    tokens = config["batching"]["batch_tokens"]
    if halved_before:
        return CheckFailed(
            f"The memory of the device is full, and with half the batches (batching.batch_tokens={tokens}) too: "
            "begin again with a smaller model, or leave out long sentences (filters.max_tokens)."
        )
    change = halved(config)[1]
    return CheckFailed(
        f"The memory of the device is full (batching.batch_tokens={tokens}). Begin again with {change} overwrite=true, "
        "or go on with resume=true on a device with more."
    )
