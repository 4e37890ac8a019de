"""Studies that are started by hand now and then: results, ablations, alignments, robustness."""
