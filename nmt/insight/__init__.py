"""Looking into a finished run: forced maps, attribution, interventions, ablation, cells, beams, alternatives."""
