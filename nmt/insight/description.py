"""What the lab says about a run, on the server's page and on the page that is one file."""

from typing import Any

from nmt.runs.load import LoadedRun


def run_description(run: LoadedRun) -> dict[str, Any]:
    """A run's languages and corpus, its model, the parts of the attention at each site, and its beam search.

    The sites are those of a sentence by itself. `embedded` is true if the run was trained on the embedded corpus alone.
    The settings of the beam are null if the run samples.
    """
    return {
        "source": run.direction.source,
        "target": run.direction.target,
        "embedded": run.settings.data.embedded,
        "model": type(run.model).__name__,
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        "sites": {
            site: {
                "layers": len(layers),
                "heads": layers[0].num_heads,
                "scorer": type(layers[0].scorer).__name__,
                "window": type(layers[0].window).__name__,
                "normalizer": type(layers[0].normalizer).__name__,
                "queries": run.model.queries[site],
            }
            for site, layers in run.model.sentence_sites.items()
        },
        "search": {name: run.settings.search.get(name) for name in ("beam_size", "length_penalty")},
    }
