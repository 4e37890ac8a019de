"""The long short-term memory-network (Cheng et al. 2016, section 3.1): laws, the paper's equations, and autocast."""

from functools import partial

import pytest
import torch

from nmt.attention import Attention, windows
from nmt.attention.edits import Change, Edit, with_parts
from nmt.attention.normalizers import Softmax
from nmt.attention.scorers import Additive
from nmt.models.lstmn import LSTMN
from nmt.runs.precision import with_precision

LENGTHS = torch.tensor([7, 3, 5])


class OnThePrevious(Change):
    """All weight on the last allowed key."""

    def __call__(self, weights, visible):
        places = torch.arange(weights.shape[-1])
        last = visible.mask.sum(dim=-1, keepdim=True) - 1
        return (places == last).to(weights.dtype).expand(weights.shape)


@pytest.fixture
def lstmn():
    torch.manual_seed(2)
    return LSTMN(partial(Attention, Additive, windows.Global, Softmax), input_dim=4, hidden_dim=6).double()


@pytest.fixture
def inputs():
    return torch.randn(3, 7, 4, generator=torch.Generator().manual_seed(8), dtype=torch.float64)


def test_all_weight_on_the_previous_position_is_an_lstm_bit_for_bit(lstmn, inputs):
    with with_parts(lstmn.attention, edits=[Edit(OnThePrevious())]):
        states, (hidden, cell) = lstmn(inputs, LENGTHS)
    for row, length in enumerate(LENGTHS):
        h = c = torch.zeros(3, 6, dtype=torch.float64)
        for t in range(length):
            h, c = lstmn.cell(inputs[:, t], (h, c))
            assert states[row, t].equal(h[row])
        assert hidden[0, row].equal(h[row])
        assert cell[0, row].equal(c[row])


def test_the_equations_of_the_paper(lstmn, inputs, close):
    """Equations 4 to 9 in loops: W_x and W_h~ are the two parts of the product of both query matrices."""
    score, width = lstmn.attention.scorer, inputs.shape[-1]
    asked = score.query_weight[0].T @ lstmn.query.weight
    w_x, w_h_tilde = asked[:, :width], asked[:, width:]
    w_h, v = score.key_weight[0].T, score.vector[0]
    kernel = torch.cat([lstmn.cell.weight_hh, lstmn.cell.weight_ih], dim=1)
    bias = lstmn.cell.bias_ih + lstmn.cell.bias_hh
    states, (_, cells) = lstmn(inputs, LENGTHS)
    for row, length in enumerate(LENGTHS):
        tape, h_tilde, c_tilde = [], torch.zeros(6).double(), torch.zeros(6).double()
        for t in range(length):
            x = inputs[row, t]
            if tape:
                a = torch.stack([v @ torch.tanh(w_h @ h + w_x @ x + w_h_tilde @ h_tilde) for h, _ in tape])
                s = a.softmax(dim=0)
                h_tilde = sum(weight * h for weight, (h, _) in zip(s, tape, strict=True))
                c_tilde = sum(weight * c for weight, (_, c) in zip(s, tape, strict=True))
            i, f, candidate, o = (kernel @ torch.cat([h_tilde, x]) + bias).chunk(4)
            c = f.sigmoid() * c_tilde + i.sigmoid() * candidate.tanh()
            h = o.sigmoid() * c.tanh()
            tape.append((h, c))
            close(states[row, t], h)
        close(cells[0, row], c)


def test_the_map_is_strictly_below_the_diagonal_and_blank_at_padding(lstmn, inputs):
    seen = []
    lstmn(inputs, LENGTHS, lambda weights, visible: seen.append((weights, visible)))
    ((weights, visible),) = seen
    assert weights.shape == (3, 1, 7, 7)
    positions = torch.arange(7)
    for row, length in enumerate(LENGTHS):
        past = (positions < positions[:, None]) & (positions < length)
        assert visible.mask[row, 0].equal(past)
        assert weights[row, 0].gt(0).equal(past)


def test_nothing_later_reaches_an_earlier_state(lstmn, inputs):
    other = inputs.clone()
    other[:, 4:] += 1
    before, after = (lstmn(each, torch.tensor([7, 7, 7]))[0] for each in (inputs, other))
    assert before[:, :4].equal(after[:, :4])
    assert before[:, 4:].ne(after[:, 4:]).any(dim=-1).all()


def test_an_initial_state_replaces_the_missing_past(lstmn, inputs):
    h, c = (torch.randn(3, 6, dtype=torch.float64) for _ in range(2))
    position = torch.zeros(3, dtype=torch.long)
    hidden, cell, past = lstmn.step(inputs[:, 0], (h, c), lstmn.start(h), position)
    expected = lstmn.cell(inputs[:, 0], (h, c))
    assert hidden.equal(expected[0])
    assert cell.equal(expected[1])
    assert past.h_tilde.equal(h)
    again = lstmn.step(inputs[:, 1], (h, c), past, position + 1)[0]
    unused = lstmn.step(inputs[:, 1], (h + 1, c + 1), past, position + 1)[0]
    assert again.equal(unused), "only the first position reads it"


def test_autocast_changes_nothing(lstmn, inputs):
    lstmn, inputs = lstmn.float(), inputs.float()
    with torch.autocast("cpu", torch.bfloat16):
        rounded = lstmn(inputs, LENGTHS)[0]
    assert rounded.equal(lstmn(inputs, LENGTHS)[0])


@pytest.mark.parametrize("scorer", ["additive", "general", "gaussian"])
def test_a_decoder_keeps_its_past_in_float32_under_autocast(make_model, sentences, scorer):
    source, mask, target = sentences
    model = make_model("luong", scorer, encoder="lstmn", decoder="lstmn").float().train()
    with torch.autocast("cpu", torch.bfloat16):
        model(source, mask, target).float().square().mean().backward()
        memory = model.encode(source, mask)
        _, state = model.step(target[:, :1], model.start(memory, beams=1), memory)
    assert {part.dtype for past in state.past for part in past} == {torch.float32}
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_lower_precision_takes_the_place_of_float32(make_model, sentences, precision):
    source, mask, target = sentences
    model = make_model("luong", "general", encoder="lstmn", decoder="lstmn").float()
    exact = model(source, mask, target)
    rounded = with_precision(model, precision, torch.device("cpu"))(source, mask, target)
    assert rounded.shape == exact.shape
    assert rounded.isfinite().all()


def test_the_choice_of_networks_decides_which_sites_there_are(make_model):
    assert [*make_model("luong", "general").sites] == ["cross"]
    assert [*make_model("luong", "general", encoder="lstmn").sites] == ["encoder_self", "cross"]
    both = make_model("luong", "general", encoder="lstmn", decoder="lstmn").sites
    assert {site: len(layers) for site, layers in both.items()} == {"encoder_self": 2, "decoder_self": 2, "cross": 1}
    assert [*make_model("bahdanau", "general", encoder="lstmn").sites] == ["encoder_self", "cross"]
