"""scripts/studies/factorization_machine.py: the formulas in loops, the law of equal weights, and what is learned."""

from itertools import combinations

import pytest
import torch

from nmt.attention.edits import Change, Edit, with_parts
from nmt.errors import Mistake
from scripts.studies import factorization_machine as script


class Ones(Change):
    """a = 1 for every pair."""

    def __call__(self, weights, view):
        return torch.ones_like(weights)


@pytest.fixture
def features():
    return script.sample(9, seed=4)[0].features


@pytest.fixture
def attentional():
    torch.manual_seed(3)
    machine = script.AttentionalFactorizationMachine(dim=5).double()
    torch.nn.init.normal_(machine.linear.weight)
    torch.nn.init.normal_(machine.output)
    return machine


def test_the_plain_machine_is_the_sum_over_pairs(features):
    machine = script.FactorizationMachine(dim=5).double()
    torch.nn.init.normal_(machine.linear.weight)
    found = machine(features)
    for row, y in zip(features, found, strict=True):
        w, v = machine.linear.weight[row, 0], machine.vectors.weight[row]
        expected = machine.constant + w.sum() + sum(v[i] @ v[j] for i, j in combinations(range(script.FIELDS), 2))
        torch.testing.assert_close(y, expected)


def test_the_attentional_machine_is_the_formula_of_the_paper(attentional, features):
    """y = w_0 + sum_i w_i + p . sum a_ij (v_i * v_j), a = softmax of h . ReLU(W (v_i * v_j) + b), in loops."""
    scorer = attentional.attention.scorer
    found, weights = attentional.attend(features)
    for row, y, a in zip(features, found, weights, strict=True):
        w, v = attentional.linear.weight[row, 0], attentional.vectors.weight[row]
        products = [v[i] * v[j] for i, j in combinations(range(script.FIELDS), 2)]
        scores = [scorer.vector.weight[0] @ torch.relu(scorer.hidden(product)) for product in products]
        expected = torch.stack(scores).softmax(dim=0)
        torch.testing.assert_close(a, expected)
        pooled = sum(weight * product for weight, product in zip(expected, products, strict=True))
        torch.testing.assert_close(y, attentional.constant + w.sum() + attentional.output @ pooled)


def test_equal_weights_give_the_plain_machine(attentional, features):
    """a = 1 and p = 1: 1/2 sum_f [(sum_i v_if)^2 - sum_i v_if^2]."""
    attentional.output.data.fill_(1)
    with with_parts(attentional.attention, edits=[Edit(Ones())]):
        found = attentional(features)
    torch.testing.assert_close(found, script.FactorizationMachine.forward(attentional, features))


def test_attention_finds_the_pairs_of_the_rule():
    training, test = script.sample(4_000, seed=1)
    torch.manual_seed(1)
    attentional = script.AttentionalFactorizationMachine(dim=8)
    script.learn(attentional, training, steps=300)
    weights, used = script.mean_weights(attentional, test), script.rule() > 0
    assert weights[used].mean() > 1.5 * weights[~used].mean()


@pytest.mark.soak
def test_attention_lowers_the_error_once_all_is_learned():
    training, test = script.sample(8_000, seed=1)
    torch.manual_seed(1)
    plain, attentional = (
        machine(dim=8) for machine in (script.FactorizationMachine, script.AttentionalFactorizationMachine)
    )
    for machine in (plain, attentional):
        script.learn(machine, training, steps=1_500)
    assert script.error(attentional, test) < script.error(plain, test)


def test_draws_one_picture(tmp_path, capsys):
    script.main(["--out", str(tmp_path / "pairs.png"), "--examples", "50", "--steps", "2"])
    assert (tmp_path / "pairs.png").read_bytes().startswith(b"\x89PNG")
    assert "of the attention is on the 4 of 15 pairs" in capsys.readouterr().out


def test_refuses_no_examples():
    with pytest.raises(Mistake, match=r"^--steps is 0; it must be at least 1\.$"):
        script.main(["--steps", "0"])
