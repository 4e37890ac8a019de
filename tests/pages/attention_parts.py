"""Every scorer, window and normalizer, by name, as the tests of the pages build them."""

from collections.abc import Callable
from functools import partial

from nmt.attention import normalizers, scorers, windows

SCORERS: dict[str, Callable[..., scorers.Scorer]] = {
    "dot": scorers.Dot,
    "scaled_dot": scorers.ScaledDot,
    "general": scorers.General,
    "location": partial(scorers.Location, max_length=40),
    "gaussian": scorers.Gaussian,
    "gaussian_learned": scorers.GaussianLearned,
    "none": scorers.NoScore,
    "additive": partial(scorers.Additive, hidden_dim=7),
    "concat": scorers.Concat,
}
WINDOWS: dict[str, Callable[..., windows.Window]] = {
    "global": windows.Global,
    "local_m": partial(windows.LocalM, half_width=2),
    "local_p": partial(windows.LocalP, half_width=2, renormalize=False),
    "renormalized": partial(windows.LocalP, half_width=3, renormalize=True),
}
NORMALIZERS: dict[str, Callable[[], normalizers.Normalizer]] = {
    "softmax": normalizers.Softmax,
    "sparsemax": normalizers.Sparsemax,
}
