"""Training with Lightning: a run begins or resumes (begin, resume), and the loop leads to the best weights (loop)."""
