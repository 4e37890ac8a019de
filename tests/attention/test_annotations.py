"""The annotations of types and sizes are checked in this folder; see check_annotations in tests/conftest.py."""

import pytest
import torch
from jaxtyping import TypeCheckError

from nmt.attention.masks import lengths_to_mask

FLOATS = torch.tensor([1.0, 2.0])


def test_what_contradicts_its_annotation_is_an_error() -> None:
    with pytest.raises(TypeCheckError, match="lengths_to_mask"):
        lengths_to_mask(FLOATS, 3)


@pytest.mark.unchecked
def test_an_unchecked_test_does_without() -> None:
    assert lengths_to_mask(FLOATS, 3).tolist() == [[True, False, False], [True, True, False]]
