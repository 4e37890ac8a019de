"""The numbers behind one row of an attention map, from the query and the keys to the context vector."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch.nn.functional import pad

from nmt.attention.scorers import Additive, Concat, Gaussian
from nmt.insight.attention_calls import watched_calls
from nmt.insight.sentence_pair import check_index, check_site, step_log_probs
from nmt.maps.attention_map import site_labels
from nmt.runs.load import LoadedRun


class Cells(NamedTuple):
    """One row of a map at one site, layer and head, and what it was computed from.

    scores[i] = score(query, keys[i]), weights = normalizer(scores) over the allowed columns, and
    context = sum_i weights[i] values[i]. A local-p window multiplies the weights by its prior; if `renormalized`, it
    adds the log of the prior to the scores instead.

    The score is vector . tanh(query + key) for the additive and concat scorers, query . key - |key|^2 / 2 for the
    Gaussian ones, 0 for none, and query . key for the others.
    """

    scorer: str
    """Name of the scorer's class, such as ScaledDot."""
    normalizer: str
    window: str
    row: str
    """The piece that the row reads."""
    columns: list[str]
    query: list[float]
    """After the scorer's projection."""
    keys: list[list[float]]
    """After the scorer's projection, one for each column; for the location score, the row of its matrix."""
    vector: list[float] | None
    """v in the additive and concat scores; None for other scorers."""
    scores: list[float]
    allowed: list[bool]
    log_prior: list[float] | None
    """log g of a local-p window; None for other windows."""
    renormalized: bool
    center: float | None
    """p_t of a local window; None for the global one."""
    weights: list[float]
    values: list[list[float]]
    context: list[float]


def cells(run: LoadedRun, source: list[int], target: list[int], site: str, layer: int, head: int, row: int) -> Cells:
    """One row of a map of a sentence pair; `source` and `target` are ids without BOS and EOS.

    Raises Mistake for a site, layer, head or row that does not exist, and whatever `step_log_probs` raises.
    """
    sites = run.model.sentence_sites
    check_site(site, sites)
    layers = sites[site]
    of_source, of_target = run.tokenizers
    labels = site_labels(of_source.pieces(source), of_target.pieces(target))[site]
    check_index("layer", layer, len(layers), site)
    check_index("head", head, layers[0].num_heads, site)
    check_index("row", row, len(labels.inputs), site)
    attention = layers[layer]
    calls: list[Mapping[str, Any]] = []
    with watched_calls([attention], lambda _, arguments: calls.append(arguments)):
        step_log_probs(run, source, target)
    # A recurrent decoder calls its attention once per step, a Transformer once for all steps.
    call = calls[row] if len(calls) > 1 else calls[0]
    queries, query_states = call["queries"], call["query_states"]
    index = 0 if len(calls) > 1 else row
    # A later step of an LSTMN has the keys that this one does not see.
    keys, values = calls[-1]["keys"], calls[-1]["values"]
    mask = pad(call["mask"], (0, keys.shape[2] - call["keys"].shape[2]))
    with torch.inference_mode():
        view = attention.window(mask, query_states)
        projected = attention.scorer.project_queries(queries)
        vectors = attention.scorer.key_vectors(keys)
        scores = attention.scorer.score(projected, keys)
        context, weights = attention.attend(queries, keys, values, mask, query_states)
    allowed = view.mask.expand(weights.shape)[0, head, index]
    prior = None if view.log_prior is None else view.log_prior[0, head, index].tolist()
    center = None if view.center is None else float(view.center.expand(1, attention.num_heads, -1, -1)[0, head, index])
    # The Gaussian scorers append columns that turn their score into an inner product.
    width = queries.shape[-1] if isinstance(attention.scorer, Gaussian) else projected.shape[-1]
    return Cells(
        scorer=type(attention.scorer).__name__,
        normalizer=type(attention.normalizer).__name__,
        window=type(attention.window).__name__,
        row=labels.inputs[row],
        columns=labels.columns,
        query=projected[0, head, index, :width].tolist(),
        keys=vectors[0, head, :, :width].tolist(),
        vector=attention.scorer.vector[head].tolist() if isinstance(attention.scorer, (Additive, Concat)) else None,
        scores=scores[0, head, index].tolist(),
        allowed=allowed.tolist(),
        log_prior=prior,
        renormalized=view.renormalized,
        center=center,
        weights=weights[0, head, index].tolist(),
        values=values[0, head].tolist(),
        context=context[0, head, index].tolist(),
    )
