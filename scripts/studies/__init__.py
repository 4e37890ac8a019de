"""Studies that a person runs now and then: results, ablations, alignments, robustness."""
