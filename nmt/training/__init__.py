"""Training with Lightning: preparation sets up a run, new, started from another or resumed; loop trains it."""
