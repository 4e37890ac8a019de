"""The calls of Attention modules while a model runs."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from nmt.attention import Attention

Receive = Callable[[Attention, Mapping[str, Any]], None]
"""receive(attention, arguments) gets the arguments of Attention.forward by name, defaults included."""


@contextmanager
def watched_calls(attentions: Iterable[Attention], receive: Receive) -> Iterator[None]:
    """Inside the block, `receive` gets each call of these modules, before it is computed."""
    forward = inspect.signature(Attention.forward)

    def pass_on(attention: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        call = forward.bind(attention, *arguments, **keywords)
        call.apply_defaults()
        receive(attention, call.arguments)

    with ExitStack() as hooks:
        for attention in attentions:
            hooks.callback(attention.register_forward_pre_hook(pass_on, with_kwargs=True).remove)
        yield
