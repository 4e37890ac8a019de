# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---
# %% [markdown]
# # Luong et al. 2015, equation by equation
#
# Minh-Thang Luong, Hieu Pham, Christopher D. Manning: *Effective Approaches to Attention-based Neural Machine
# Translation*, [arXiv:1508.04025](https://arxiv.org/abs/1508.04025). As on [Bahdanau's page](bahdanau2015.py), each
# equation is shown beside the code that computes it, checked on small numbers, and then trained.
#
# The paper writes $h_t$ for the decoder's state and $\bar h_s$ for the encoder's state at source position $s$.
#
# ![Luong's model: the current decoder state is the query; input feeding](../images/luong.svg)

# %%
import math
from functools import partial

import tiny_language
import torch

from nmt.attention import Attention
from nmt.attention.normalizers import Softmax
from nmt.attention.scorers import Concat, Dot, General, Location
from nmt.attention.windows import Global, LocalM, LocalP, QueryStates
from nmt.models import Luong
from nmt.models.decoders import LSTMDecoder
from nmt.models.encoders import Bidirectional


def luong(window=Global):
    torch.manual_seed(1)
    return Luong(
        partial(Attention, General, window, Softmax),
        Bidirectional(),
        LSTMDecoder(),
        embedding_dim=24,
        encoder_dim=48,
        decoder_dim=48,
        num_layers=1,
        num_heads=1,
        dropout=0.0,
        input_feeding=True,
        vocabulary=tiny_language.VOCABULARY,
    )


# %% [markdown]
# ## What is new: the order of a step (sections 3 and 3.1)
#
# Bahdanau's decoder attends with its *previous* state, and the context enters the recurrence:
# $h_{t-1} \to a_t \to c_t \to h_t$. Here the LSTM makes the current state first; this state is the query, and the
# context enters afterwards: $h_t \to a_t \to c_t \to \tilde h_t$.
#
# $$\tilde h_t = \tanh(W_c [c_t; h_t]) \qquad (5)$$
#
# $$p(y_t \mid y_{<t}, x) = \mathrm{softmax}(W_s \tilde h_t) \qquad (6)$$
#
# With input feeding (section 3.3), $\tilde h_{t-1}$ is concatenated with the next input, so that the decoder knows what
# it attended to before; at the first step it is 0. Input feeding also makes the network deep along the sentence. With
# several layers, $h_t$ and $\bar h_s$ are the states of the top layer.
#
# ```{literalinclude} ../../nmt/models/luong.py
# :pyobject: Luong.advance
# :language: python
# ```
#
# ## Global attention: section 3.1
#
# The context $c_t$ is the mean of the source states, weighted by
#
# $$a_t(s) = \mathrm{align}(h_t, \bar h_s)
# = \frac{\exp(\mathrm{score}(h_t, \bar h_s))}{\sum_{s'} \exp(\mathrm{score}(h_t, \bar h_{s'}))} \qquad (7)$$
#
# There are three scores of the contents:
#
# $$\mathrm{score}(h_t, \bar h_s) = h_t^\top \bar h_s \qquad \text{(dot)}$$
#
# $$\mathrm{score}(h_t, \bar h_s) = h_t^\top W_a \bar h_s \qquad \text{(general)}$$
#
# $$\mathrm{score}(h_t, \bar h_s) = v_a^\top \tanh(W_a [h_t; \bar h_s]) \qquad \text{(concat)}$$
#
# `Dot` and `General` share the method `score`, which multiplies the query and the vectors of the keys. `General` first
# maps the keys; its parameter `weight` is $W_a^\top$, for each head (heads, key width, query width). `Concat` is shown
# whole.
#
# ```{literalinclude} ../../nmt/attention/scorers.py
# :pyobject: InnerProduct.score
# :language: python
# ```
#
# ```{literalinclude} ../../nmt/attention/scorers.py
# :pyobject: General.project_keys
# :language: python
# ```
#
# ```{literalinclude} ../../nmt/attention/scorers.py
# :pyobject: Concat
# :language: python
# ```
#
# In the paper's experiments, the half of $W_a$ that multiplies $\bar h_s$ was fixed to the identity, and its authors
# suspect that this is why concat did badly (footnote 15). Here, all of it is learned.
#
# The fourth score ignores the source states; it has one row of $W_a$ for each position:
#
# $$a_t = \mathrm{softmax}(W_a h_t) \qquad (8)$$
#
# In a short sentence, the paper uses only the first part of $a_t$ (footnote 6). The code computes the softmax over that
# part, so the weights sum to 1. In a sentence with more positions than rows, the paper ignores the words at the end;
# the code refuses the sentence.
#
# ```{literalinclude} ../../nmt/attention/scorers.py
# :pyobject: Location
# :language: python
# ```

# %%
torch.manual_seed(2)
h_t, h_s = torch.randn(4), torch.randn(6, 4)


def score(scorer):
    query, keys = h_t.view(1, 1, 1, 4), h_s.view(1, 1, 6, 4)
    with torch.no_grad():
        return scorer.score(scorer.project_queries(query), scorer.project_keys(keys)).flatten()


widths = {"query_dim": 4, "key_dim": 4, "num_heads": 1}
general, concat, location = General(**widths), Concat(**widths), Location(**widths, max_length=6)
W_general, W_concat, v_a = general.weight[0].T, concat.weight[0].T, concat.vector[0]
torch.testing.assert_close(score(Dot(**widths)), h_s @ h_t)
torch.testing.assert_close(score(general), h_s @ W_general.T.detach() @ h_t)
both = torch.cat([h_t.expand(6, 4), h_s], dim=1)
torch.testing.assert_close(score(concat), (torch.tanh(both @ W_concat.T) @ v_a).detach())
torch.testing.assert_close(score(location), (location.weight[0] @ h_t).detach())
print("general:", score(general).numpy().round(3))

# %% [markdown]
# Two steps of a whole model, checked against equations 5 to 7. The second one is fed the $\tilde h_1$ of the first:

# %%
model = luong()
source = tiny_language.ids([[*tiny_language.HELD_OUT[0], "</s>"]], tiny_language.SOURCE_WORDS)
target = torch.tensor([[tiny_language.TARGET_WORDS.index(word) for word in ("<s>", "một")]])
with torch.no_grad():
    annotations, first = model.annotate(model.source_embedding(source), source != 0)
    logits = model(source, source != 0, target)[0]

    states, W_a = annotations[0], model.attention.attention.scorer.weight[0].T
    attentional, lstm = torch.zeros(48), (first.hidden[:, 0], first.cell[:, 0])  # h~_0 = 0
    for step in range(2):
        fed = torch.cat([model.target_embedding(target)[0, step], attentional])  # the word that is read, and h~_{t-1}
        lstm = model.cells[0](fed[None], lstm)
        state = lstm[0][0]
        a = torch.softmax(states @ W_a.T @ state, dim=0)  # equation 7
        attentional = torch.tanh(model.combine.weight @ torch.cat([a @ states, state]))  # equation 5
        torch.testing.assert_close(logits[step], model.output.weight @ attentional)  # equation 6, before the softmax
print("a_2 =", a.numpy().round(3), "before training")

# %% [markdown]
# ## Local attention: section 3.2
#
# Global attention looks at every word for every step, which is expensive for long texts. [Xu et al.
# 2015](../reference/bibliography.md#xu-2015) choose one place in a picture (hard attention), but a choice cannot be
# differentiated. Local attention is between the two: a step sees only the source positions in $[p_t - D, p_t + D]$.
# With local-m, $p_t = t$. With local-p, the center is predicted; $S$ is the length of the source:
#
# $$p_t = S \cdot \mathrm{sigmoid}(v_p^\top \tanh(W_p h_t)) \qquad (9)$$
#
# $$a_t(s) = \mathrm{align}(h_t, \bar h_s) \exp\left( -\frac{(s - p_t)^2}{2 \sigma^2} \right), \qquad
# \sigma = \frac{D}{2} \qquad (10)$$
#
# In (10), `align` is the softmax inside the window. The products are not normalized again (footnote 10 calls it a
# truncated Gaussian that modifies the weights), so a row sums to at most 1.
#
# Two details differ. For local-m past the end of the source, the paper's window becomes narrower (footnote 8) and at
# last empty. The code keeps the center at the last position, EOS, as the authors' program,
# [nmt.hybrid](https://github.com/lmthang/nmt.hybrid), does. The paper gives local-p $2D + 1$ weights, and that program
# rounds $p_t$ down for the window. In the code, $p_t$ stays a real number, so a window usually has $2D$ positions.
#
# ```{literalinclude} ../../nmt/attention/windows.py
# :pyobject: LocalM.forward
# :language: python
# ```
#
# ```{literalinclude} ../../nmt/attention/windows.py
# :pyobject: LocalP.center
# :language: python
# ```
#
# ```{literalinclude} ../../nmt/attention/windows.py
# :pyobject: LocalP.forward
# :language: python
# ```

# %%
D = 2
local = Attention(Dot, partial(LocalP, half_width=D, renormalize=False), Softmax, query_dim=4, key_dim=4)
everything = torch.ones(1, 1, 1, 6, dtype=torch.bool)
keys, states = h_s.view(1, 1, 6, 4), QueryStates(h_t.view(1, 1, 4), torch.tensor([[3]]))
with torch.no_grad():
    _, a_t = local.attend(h_t.view(1, 1, 1, 4), local.project_keys(keys), keys, everything, states)
    W_p, v_p = local.window.hidden.weight, local.window.place.weight[0]
    p_t = 6 * torch.sigmoid(v_p @ torch.tanh(W_p @ h_t))  # equation 9

s = torch.arange(6.0)
in_window = (s - p_t).abs() <= D
align = torch.where(in_window, (h_s @ h_t).exp(), 0) / (h_s @ h_t).exp()[in_window].sum()
torch.testing.assert_close(a_t.flatten(), align * torch.exp(-((s - p_t) ** 2) / (2 * (D / 2) ** 2)))  # equation 10
print(f"p_t = {p_t:.3f}, weights", a_t.flatten().numpy().round(3), f"sum {a_t.sum():.3f}")

# %% [markdown]
# ## A small run
#
# The same tiny language as on [Bahdanau's page](bahdanau2015.py): the adjective follows the noun in Vietnamese. Once
# with the global window, and once with local-m and $D = 1$, which sees only three source words around position $t$.

# %%
english, vietnamese = tiny_language.HELD_OUT
losses, maps = {}, {}
for name, window in {"global": Global, "local-m, D = 1": partial(LocalM, half_width=1)}.items():
    trained = luong(window)
    losses[name] = tiny_language.train(trained)
    maps[name] = tiny_language.attend(trained)
    print(f"{name:15} loss {losses[name]:.4f} ", " ".join(tiny_language.translate(trained, english)))

# %%
axes = maps["global"].plot(title="Luong, global attention")

# %%
axes = maps["local-m, D = 1"].plot(title="Luong, local-m with D = 1")

# %% [markdown]
# Both translate the sentence, but look at the rows of the global map before you read it as an alignment: "mèo" (cat)
# and "nhỏ" (small) take their information from the end of the sentence. A bidirectional encoder has already carried it
# there, and the model is only trained to translate, not to attend where we would. In the local map, blank cells are
# outside the window: row $t$ sees the columns $t - 1$ to $t + 1$, and the last rows the end of the sentence. "nhỏ"
# cannot see "small" at all, and is right all the same, for the same reason.
#
# ## What the paper found
#
# Tokenized BLEU from English to German (table 1, newstest2014), each change added to those before: 11.3 without
# attention, 12.6 with a reversed source, 14.0 with dropout, 16.8 with global attention (location), 18.1 with input
# feeding, 19.0 with local-p (general) instead, 20.9 when unknown words are replaced, 23.0 with eight models. In table
# 4, dot is the best score for global attention and general for local attention, and location learns poor alignments.
#
# ## What the paper does differently
#
# - **Encoder** (sections 3.1, 4.1 and 4.2): four LSTM layers in one direction; the source is reversed. Here, one layer
#   reads it in both directions, and its last states pass through $\tanh$ of a linear layer before the decoder starts
#   from them. `encoder@model=reversed` is the paper's.
# - **Sizes** (4.1): 1,000 units, embeddings of 1,000, $D = 10$, the 50,000 most frequent words. Here: 48, 24, $D = 1$.
# - **Initial weights** (4.1): uniform in $[-0.1, 0.1]$. Here only $W_a$ is; the others are torch's.
# - **Training** (4.1): SGD with a rate of 1 and 128 sentences per update for ten epochs; after five, the rate is halved
#   after every epoch (with dropout of 0.2: twelve and eight). Gradients are cut to a norm of 5. Here: Adam and 32
#   sentences.
#
# Where the paper needs links between words, as for replacing unknown ones, it assigns the map of step $t$ to the word
# that the step reads, and for location to the word that it predicts (footnote 14). The pictures on this page label each
# row with the word that the step predicts.
#
# See [local attention on your own sentence](../explanation/attention.md#local-attention-on-your-own-sentence), in the
# lab or in a model that you train; `experiment=luong2015_local_p` has the paper's sizes. Next:
# [Vaswani et al. 2017](vaswani2017.py).

# %%
assert math.isclose(maps["global"].weights.sum(), len(vietnamese) + 1, rel_tol=1e-4)  # each row sums to 1
