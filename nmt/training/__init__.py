"""Training with Lightning: how it begins or resumes (begin, resume), and the loop to the best weights (loop)."""

from nmt.training.task import TranslationTask

__all__ = ["TranslationTask"]
