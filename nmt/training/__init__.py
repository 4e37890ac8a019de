"""Training with Lightning: what a step computes, how the learning rate moves, what happens around the steps."""

from nmt.training.task import TranslationTask

__all__ = ["TranslationTask"]
