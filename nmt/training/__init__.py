"""Training with Lightning: preparation makes a new, inherited or resumed run, and loop trains it."""
