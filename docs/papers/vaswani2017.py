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
# # Vaswani et al. 2017, equation by equation
#
# Ashish Vaswani and others: *Attention Is All You Need*, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762). As on
# the pages of [Bahdanau](bahdanau2015.py) and [Luong](luong2015.py), each equation is shown beside the code that
# computes it, checked on small numbers, and then trained. At the end, a worked example that many courses follow.
#
# ![The Transformer: self-attention in both stacks, and cross attention between them](../images/transformer.svg)

# %%
import math
from functools import partial

import tiny_language
import torch

from nmt.attention import Attention, MultiHeadAttention, causal_mask
from nmt.attention.normalizers import Softmax
from nmt.attention.scorers import ScaledDot
from nmt.attention.windows import Global
from nmt.kernels.vocabulary_loss import summed_nll
from nmt.models import Transformer
from nmt.models.embeddings import sinusoids
from nmt.models.norms import LayerNorm
from nmt.models.transformer_layers import FeedForward, Sublayer
from nmt.training.schedules import noam

torch.manual_seed(1)
attention = partial(Attention, ScaledDot, Global, Softmax)
model = Transformer(
    attention,
    attention,
    attention,
    dim=48,
    ffn_dim=96,
    num_heads=4,
    num_layers=2,
    dropout=0.0,
    norm_first=False,
    vocabulary=tiny_language.VOCABULARY,
)

# %% [markdown]
# ## Scaled dot-product attention: section 3.2.1
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left( \frac{Q K^\top}{\sqrt{d_k}} \right) V \qquad (1)$$
#
# `project_queries` divides by $\sqrt{d_k}$, `score` multiplies the matrices, and `Attention` does the rest. It is the
# class that Bahdanau's and Luong's models use; only the scorer differs.
#
# ```{literalinclude} ../../nmt/attention/scorers.py
# :pyobject: ScaledDot
# :language: python
# ```
#
# ```{literalinclude} ../../nmt/attention/attention.py
# :pyobject: Attention._attend
# :language: python
# ```

# %%
torch.manual_seed(2)
Q, K, V = torch.randn(3, 8), torch.randn(5, 8), torch.randn(5, 8)
one_head = attention(query_dim=8, key_dim=8)
everything = torch.ones(1, 1, 1, 5, dtype=torch.bool)
context, weights = one_head.attend(
    Q.view(1, 1, 3, 8), one_head.project_keys(K.view(1, 1, 5, 8)), V.view(1, 1, 5, 8), everything
)
torch.testing.assert_close(context[0, 0], torch.softmax(Q @ K.T / math.sqrt(8), dim=-1) @ V)

# %% [markdown]
# Why the root (footnote 4)? If the components of $q$ and $k$ are independent with mean 0 and variance 1, the variance
# of $q \cdot k = \sum_{i=1}^{d_k} q_i k_i$ is $d_k$. Without the root, the softmax of wide heads is almost one-hot, and
# its gradients are very small. The authors suspect that this is why unscaled scores do worse than additive attention
# when $d_k$ is large (section 3.2.1):

# %%
wide_q, wide_k = torch.randn(1000, 256), torch.randn(1000, 256)
products = (wide_q * wide_k).sum(dim=-1)
print(f"variance of q . k: {products.var():.0f}; after division by the root: {(products / math.sqrt(256)).var():.2f}")
scores = wide_q @ wide_k[:8].T
for name, scaled in {"without the root": scores, "with the root": scores / math.sqrt(256)}.items():
    a = torch.softmax(scaled, dim=-1)  # the derivative of a weight with respect to its own score is a (1 - a)
    print(f"{name}: largest of eight weights {a.amax(dim=-1).mean():.2f}, mean derivative {(a * (1 - a)).mean():.3f}")

# %% [markdown]
# ## Multi-head attention: section 3.2.2
#
# $$\mathrm{MultiHead}(Q, K, V) = \mathrm{Concat}(\mathrm{head}_1, \ldots, \mathrm{head}_h) W^O$$
#
# $$\mathrm{head}_i = \mathrm{Attention}(Q W_i^Q, K W_i^K, V W_i^V)$$
#
# One linear layer computes the $W_i^Q$ of all heads; `_split` gives each head its part of the width. (Reshaping without
# the transposition would mix positions with heads, a common mistake.) Here the layers also have biases; the paper's are
# plain matrices. Because each head has a part of the width, $d_k = d_v = d_{\mathrm{model}} / h$, all of them together
# cost about as much as one head of the whole width.
#
# ```{literalinclude} ../../nmt/attention/multihead.py
# :pyobject: MultiHeadAttention
# :language: python
# ```

# %%
torch.manual_seed(3)
heads = MultiHeadAttention(attention, query_dim=8, key_dim=8, num_heads=2, dropout=0.0)
x, y = torch.randn(1, 3, 8), torch.randn(1, 5, 8)
with torch.no_grad():
    q, k, v = heads.query(x)[0], heads.key(y)[0], heads.value(y)[0]
    # Each head is 4 wide, and sqrt(4) = 2.
    contexts = [torch.softmax(q[:, i] @ k[:, i].T / 2, dim=-1) @ v[:, i] for i in (slice(0, 4), slice(4, 8))]
    torch.testing.assert_close(heads(x, heads.project(y), everything)[0], heads.output(torch.cat(contexts, dim=-1)))

# %% [markdown]
# ## Three uses, and the mask of the decoder: section 3.2.3
#
# - **Encoder self-attention**: queries, keys and values are the states of the source.
# - **Decoder self-attention**: all three are the states of the target so far.
# - **Cross attention**: the queries come from the decoder, keys and values from the encoder, as in Bahdanau's and
#   Luong's models.
#
# Position $t$ of the decoder's self-attention must not see later positions. The paper sets their scores to $-\infty$
# before the softmax; here a mask says who may see whom, and blocked weights are exactly 0. The decoder also reads the
# target shifted by one position. The mask and the shift together keep a position from seeing the word that it has to
# predict (section 3.1).
#
# ```{literalinclude} ../../nmt/attention/masks.py
# :pyobject: causal_mask
# :language: python
# ```

# %%
print(causal_mask(4).int().numpy())

# %% [markdown]
# ## Sub-layers: section 3.1, and feed-forward networks: section 3.3
#
# $$\mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))$$
#
# $$\mathrm{FFN}(x) = \max(0, x W_1 + b_1) W_2 + b_2 \qquad (2)$$
#
# ```{literalinclude} ../../nmt/models/transformer_layers.py
# :pyobject: Sublayer
# :language: python
# ```
#
# ```{literalinclude} ../../nmt/kernels/feed_forward.py
# :pyobject: feed_forward
# :language: python
# ```

# %%
torch.manual_seed(4)
ffn, around = FeedForward(8, 16, dropout=0.0), Sublayer(LayerNorm, 8, dropout=0.0, norm_first=False)
with torch.no_grad():
    expected = torch.relu(x @ ffn.inner.weight.T + ffn.inner.bias) @ ffn.outer.weight.T + ffn.outer.bias  # equation 2
    torch.testing.assert_close(ffn(x), expected)
    added = around.after(x, ffn(around.before(x)))
    total = x + expected
    centered = total - total.mean(dim=-1, keepdim=True)
    torch.testing.assert_close(added, centered / (centered.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt())

# %% [markdown]
# ## Embeddings and positions: sections 3.4 and 3.5
#
# The embeddings are multiplied by $\sqrt{d_{\mathrm{model}}}$ and added to
#
# $$PE_{(pos, 2i)} = \sin(pos / 10000^{2i/d_{\mathrm{model}}}), \qquad
# PE_{(pos, 2i+1)} = \cos(pos / 10000^{2i/d_{\mathrm{model}}})$$
#
# For a fixed distance $k$, $PE_{pos+k}$ is a linear function of $PE_{pos}$: the pair of sine and cosine $i$ is rotated
# by an angle that depends on $k$ and $i$, not on $pos$. Learned positions did as well (table 3, row E). The output
# layer has the weights of the embeddings: in the paper one matrix for both languages and the output, here, with a
# vocabulary for each language, the target's for the output.
#
# ```{literalinclude} ../../nmt/models/embeddings.py
# :pyobject: sinusoids
# :language: python
# ```
#
# ```{literalinclude} ../../nmt/models/transformer_layers.py
# :pyobject: with_positions
# :language: python
# ```

# %%
positions = sinusoids(torch.arange(3), 4)
for pos in range(3):
    for i in range(2):
        angle = pos / 10000 ** (2 * i / 4)
        torch.testing.assert_close(positions[pos, 2 * i : 2 * i + 2], torch.tensor([math.sin(angle), math.cos(angle)]))
for i in range(2):  # from position 1 to 2 as from 0 to 1
    sine, cosine = positions[1, 2 * i], positions[1, 2 * i + 1]
    rotation = torch.tensor([[cosine, sine], [-sine, cosine]])
    torch.testing.assert_close(positions[2, 2 * i : 2 * i + 2], rotation @ positions[1, 2 * i : 2 * i + 2])
print(positions.numpy().round(3))
assert model.output.weight is model.target_embedding.weight

# %% [markdown]
# ## The decoder, and training: sections 3.1 and 5.3
#
# Each layer attends to the target so far, then to the source, and then applies the feed-forward network:
#
# ```{literalinclude} ../../nmt/models/transformer.py
# :pyobject: Transformer.decode
# :language: python
# ```
#
# The learning rate rises linearly for `warmup` steps (4,000 in the paper), then falls with the inverse square root of
# the step:
#
# $$lrate = d_{\mathrm{model}}^{-0.5} \cdot \min(step\_num^{-0.5}, step\_num \cdot warmup\_steps^{-1.5}) \qquad (3)$$
#
# ```{literalinclude} ../../nmt/training/schedules.py
# :pyobject: noam
# :language: python
# ```

# %%
optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
schedule = noam(optimizer, dim=512, warmup=4000)
for step in range(1, 16_001):
    rate = schedule.get_last_lr()[0]
    assert math.isclose(rate, 512**-0.5 * min(step**-0.5, step * 4000**-1.5))  # equation 3
    if step in (1, 4000, 16_000):
        print(f"rate at step {step}: {rate:.2e}")
    optimizer.step()
    schedule.step()

# %% [markdown]
# ## Regularization: section 5.4
#
# Dropout, 0.1 in the base model, is applied to the output of each sub-layer before it is added and normalized, and to
# the sums of embeddings and positions. With label smoothing ([Szegedy et al.
# 2016](../reference/bibliography.md#szegedy-2016), section 7), $\epsilon_{ls} = 0.1$, the target is not one word with
# probability 1: the word has $1 - \epsilon_{ls}$, and every entry of the vocabulary gets $\epsilon_{ls} / V$ in
# addition. The model learns to be less sure, which makes the perplexity worse and the translations better.

# %%
features, output, words = torch.randn(1, 4, 8), torch.nn.Linear(8, 10, bias=False), torch.tensor([[3, 1, 4, 1]])
smoothed = 0.9 * torch.nn.functional.one_hot(words, 10) + 0.1 / 10
expected = -(smoothed * output(features).log_softmax(dim=-1)).sum()
torch.testing.assert_close(summed_nll(features, output, words, label_smoothing=0.1), expected)

# %% [markdown]
# ## A small run
#
# The tiny language of the other two pages: in Vietnamese, the adjective follows the noun. For the pictures, a plain
# learning rate does.

# %%
loss = tiny_language.train(model)
english, vietnamese = tiny_language.HELD_OUT
print(f"loss {loss:.4f} nats per word")
print(" ".join(english), "->", " ".join(tiny_language.translate(model, english)))

# %%
axes = tiny_language.attend(model).plot(layer=1, title="Transformer: cross attention of layer 2, mean of the heads")

# %%
axes = tiny_language.attend(model, site="decoder_self").plot(layer=0, title="Decoder self-attention of layer 1")

# %% [markdown]
# ## What the paper found
#
# 28.4 BLEU from English to German with the big model (table 2), and, with the base model on newstest2013 (table 3):
#
# | | perplexity per piece | BLEU |
# | --- | --- | --- |
# | base: 8 heads, dropout 0.1, smoothing 0.1 | 4.92 | 25.8 |
# | one head of $d_k = 512$ | 5.29 | 24.9 |
# | 32 heads of $d_k = 16$ | 5.01 | 25.4 |
# | 8 heads with $d_k = 16$ instead of 64 | 5.16 | 25.1 |
# | no dropout | 5.77 | 24.6 |
# | no label smoothing | 4.67 | 25.3 |
# | learned positions | 4.92 | 25.7 |
#
# ## What the paper does differently
#
# - **Sizes** of the base model (sections 3.1 to 3.3): $N = 6$ layers in each stack, $d_{\mathrm{model}} = 512$,
#   $d_{ff} = 2048$, $h = 8$ heads of $d_k = d_v = 64$. Here: 2 layers, 48, 96, and 4 heads of 12.
# - **Dropout** (5.4): 0.1, on the output of each sub-layer and on the sums of embeddings and positions. Here: none.
#   `nmt` otherwise also applies it to attention weights and inside the feed-forward network, as later settings of
#   [tensor2tensor](https://github.com/tensorflow/tensor2tensor), the authors' own program, do.
# - **Training** (5.1 to 5.4): Adam with $\beta_1 = 0.9$, $\beta_2 = 0.98$, $\epsilon = 10^{-9}$ and the rate of (3),
#   about 25,000 tokens of each side per update, label smoothing of 0.1. Here: a fixed rate, 32 sentences, no smoothing.
# - **Translation** with the base model (6.1): the mean of the last five checkpoints, a beam of 4, a length penalty of
#   0.6, and at most 50 pieces more than the source. Here: one model, greedy search.
#
# `python -m nmt.train model=transformer` trains the Transformer on the embedded corpus, with layer norm *before* each
# sub-layer unless `model.norm_first=false`. `experiment=transformer_base_iwslt15` has the base model's sizes, and the
# pre-norm, warm-up and $\beta_2$ of tensor2tensor.
#
# ## A worked example from courses
#
# Four words, three numbers each, one head: an example that many courses and articles follow.
#
# $$X = \begin{pmatrix} 1 & 0 & 0 \\ 0 & 1 & 0 \\ 1 & 1 & 0 \\ 0 & 0 & 1 \end{pmatrix}, \qquad
# Q = X W_Q, \quad K = X W_K, \quad V = X W_V, \quad \mathrm{softmax}(Q K^\top / \sqrt{3}) V$$
#
# Below are two sets of $W_Q$, $W_K$ and $W_V$. With the first, the scores of the first word are 3, 3, 6, 1 and its
# output is 0, 1.7094, 1.6699. With the second, which is what numpy's `randint(3, size=(3, 3))` draws three times after
# `seed(42)`, they are 8, 2, 10, 2 and 0.9852, 1.7417, 0.7565. The results in the Viblo article "Algorithms for
# Transformer" are those of the second set, and do not follow from the matrices that the article prints. If your results
# differ from a text's, compare them with both:

# %%
X = torch.tensor([[1.0, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]])
first_set = [
    torch.tensor([[0.0, 1, 1], [2, 0, 2], [2, 1, 0]]),
    torch.tensor([[0.0, 1, 2], [0, 2, 1], [2, 0, 1]]),
    torch.tensor([[0.0, 2, 2], [0, 0, 0], [0, 1, 0]]),
]
second_set = [
    torch.tensor([[2.0, 0, 2], [2, 0, 0], [2, 1, 2]]),
    torch.tensor([[2.0, 2, 2], [0, 2, 1], [0, 1, 1]]),
    torch.tensor([[1.0, 1, 0], [0, 1, 1], [0, 0, 0]]),
]


def worked_example(matrices):
    Q, K, V = (X @ W for W in matrices)
    head = attention(query_dim=3, key_dim=3)
    seen = torch.ones(1, 1, 1, 4, dtype=torch.bool)
    context, weights = head.attend(Q.view(1, 1, 4, 3), K.view(1, 1, 4, 3), V.view(1, 1, 4, 3), seen)
    torch.testing.assert_close(weights[0, 0], torch.softmax(Q @ K.T / math.sqrt(3), dim=-1))
    return Q @ K.T, context[0, 0]


for name, matrices in {"first set": first_set, "second set": second_set}.items():
    scores, output = worked_example(matrices)
    print(f"{name}: scores of the first word {scores[0].int().tolist()}, output\n{output.numpy().round(4)}")
