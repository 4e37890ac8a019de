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
# # Bahdanau et al. 2015, equation by equation
#
# Dzmitry Bahdanau, Kyunghyun Cho, Yoshua Bengio: *Neural Machine Translation by Jointly Learning to Align and
# Translate*, [arXiv:1409.0473](https://arxiv.org/abs/1409.0473). This page shows each equation of the model beside the
# code of `nmt` that computes it, checks the code against the equation on small numbers, and trains the model on a tiny
# language. The page is also a script: `python docs/papers/bahdanau2015.py` runs it, and Jupyter opens it as a
# notebook (`pip install jupyterlab jupytext`).
#
# The paper's $i$ is the number of the target word, $j$ that of the source word (in A.2.1, $i$ is also the source word).
# In the code, $i$ is $t$.
#
# ![Bahdanau's model: the previous decoder state is the query, and the context enters the GRU](../images/bahdanau.svg)

# %%
from functools import partial

import tiny_language
import torch

from nmt.attention import Attention
from nmt.attention.normalizers import Softmax
from nmt.attention.scorers import Additive
from nmt.attention.windows import Global
from nmt.models import Bahdanau
from nmt.models.encoders import Bidirectional

torch.manual_seed(1)
model = Bahdanau(
    cross=partial(Attention, Additive, Global, Softmax),
    encoder=Bidirectional(),
    embedding_dim=24,
    encoder_dim=48,
    decoder_dim=48,
    maxout_dim=24,
    num_heads=1,
    dropout=0.0,
    vocabulary=tiny_language.VOCABULARY,
)

# %% [markdown]
# ## The encoder: section 3.2 and appendix A.2.1
#
# Without attention, the decoder sees one vector $c$ for the whole source, whatever its length (section 2.1). "If we fix
# $c_i$ to $\overrightarrow{h}_{T_x}$" (A.2.2), this model becomes the RNN Encoder–Decoder of that section. With
# attention, the source stays a sequence of vectors.
#
# A bidirectional recurrent network reads the source. The annotation of word $j$ joins the states of both directions, so
# it summarizes the words before and after it (equation 7 of A.2.1 writes the same, with $i$ for $j$):
#
# $$h_j = \left[ \overrightarrow{h}_j^\top ; \overleftarrow{h}_j^\top \right]^\top$$
#
# Each direction is the gated unit of the decoder (below) without the context, and starts from zeros. The two directions
# share the embeddings, but no other weights.
#
# ```{literalinclude} ../../nmt/models/encoders.py
# :pyobject: Bidirectional
# :language: python
# ```
#
# ## The alignment model: section 3.1 and appendix A.1.2
#
# How well does the source around word $j$ fit the output at position $i$? The answer depends on the decoder's state
# *before* word $i$ and on the annotation:
#
# $$e_{ij} = a(s_{i-1}, h_j) = v_a^\top \tanh(W_a s_{i-1} + U_a h_j)$$
#
# The network is small because it is evaluated $T_x \times T_y$ times for a pair of sentences (A.1.2). $U_a h_j$ does
# not depend on $i$, so the paper computes it in advance, and `project_keys` does too. The scores themselves are
# computed in blocks, because the vectors $\tanh(\cdot)$ of all words at once would need much memory.
#
# ```{literalinclude} ../../nmt/attention/scorers.py
# :pyobject: Additive
# :language: python
# ```
#
# A check with small numbers: $W_a = U_a = I$ and $v_a = (1, 1)$.

# %%
s = torch.tensor([1.0, 2.0])
h = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
scorer = Additive(query_dim=2, key_dim=2, num_heads=1).requires_grad_(False)
scorer.query_weight[:], scorer.key_weight[:], scorer.vector[:] = torch.eye(2), torch.eye(2), 1.0

e = torch.tanh(s + h).sum(dim=-1)  # the equation, for W_a = U_a = I and v_a = (1, 1)
computed = scorer.score(scorer.project_queries(s.view(1, 1, 1, 2)), scorer.project_keys(h.view(1, 1, 3, 2)))
torch.testing.assert_close(computed.flatten(), e)
print("e =", e.numpy().round(3))

# %% [markdown]
# ## Weights and context: equations 6 and 5
#
# $$\alpha_{ij} = \frac{\exp(e_{ij})}{\sum_{k=1}^{T_x} \exp(e_{ik})} \qquad (6)$$
#
# $$c_i = \sum_{j=1}^{T_x} \alpha_{ij} h_j \qquad (5)$$
#
# $\alpha_{ij}$ can be read as the probability that word $i$ is aligned to word $j$, and $c_i$ as the expected
# annotation. But unlike in traditional translation models, the alignment is not a latent variable: it is soft, and the
# gradient of the loss passes through it, so it is trained together with the translation (section 3.1).
#
# The normalizer computes (6), and the last line of the attention computes (5). The window does nothing here.
#
# ```{literalinclude} ../../nmt/attention/attention.py
# :pyobject: Attention._attend
# :language: python
# ```

# %%
attention = Attention(lambda **widths: scorer, Global, Softmax, query_dim=2, key_dim=2)
keys, mask = h.view(1, 1, 3, 2), torch.ones(1, 1, 1, 3, dtype=torch.bool)
context, weights = attention.attend(s.view(1, 1, 1, 2), attention.project_keys(keys), keys, mask)

alpha = e.exp() / e.exp().sum()  # equation 6
torch.testing.assert_close(weights.flatten(), alpha)
torch.testing.assert_close(context.flatten(), alpha @ h)  # equation 5
print("alpha =", alpha.numpy().round(3), " c =", (alpha @ h).numpy().round(3))

# %% [markdown]
# ## The decoder: section 3.1 and appendices A.1.1 and A.2.2
#
# The context enters the recurrence, beside the previous word and the previous state:
#
# $$p(y_i \mid y_1, \ldots, y_{i-1}, x) = g(y_{i-1}, s_i, c_i) \qquad (4)$$
#
# $$s_i = f(s_{i-1}, y_{i-1}, c_i)$$
#
# $f$ is a gated unit:
#
# $$s_i = (1 - z_i) \circ s_{i-1} + z_i \circ \tilde s_i, \qquad
# \tilde s_i = \tanh(W e(y_{i-1}) + U [r_i \circ s_{i-1}] + C c_i)$$
#
# $$z_i = \sigma(W_z e(y_{i-1}) + U_z s_{i-1} + C_z c_i), \qquad
# r_i = \sigma(W_r e(y_{i-1}) + U_r s_{i-1} + C_r c_i)$$
#
# `cell` is torch's `GRUCell` on $[e(y_{i-1}); c_i]$. It differs from the paper in two ways: its reset gate multiplies
# the product, $r_i \circ (U s_{i-1})$, and its update gate is the paper's $1 - z_i$.
#
# ```{literalinclude} ../../nmt/models/bahdanau.py
# :pyobject: Bahdanau.advance
# :language: python
# ```
#
# The first state comes from the backward state at the first word, $s_0 = \tanh(W_s \overleftarrow{h}_1)$:
#
# ```{literalinclude} ../../nmt/models/bahdanau.py
# :pyobject: Bahdanau.annotate
# :language: python
# ```
#
# ## The output: appendix A.2.2
#
# $$\tilde t_i = U_o s_{i-1} + V_o E y_{i-1} + C_o c_i, \qquad
# t_i = \left[ \max\{\tilde t_{i,2j-1}, \tilde t_{i,2j}\} \right]^\top_{j=1,\ldots,l}$$
#
# $$p(y_i \mid s_i, y_{i-1}, c_i) \propto \exp(y_i^\top W_o t_i)$$
#
# The paper contradicts itself here: equation 4 and the left side above have $s_i$, the readout has $s_{i-1}$. The code
# follows the readout, as the authors' program, [GroundHog](https://github.com/lisa-groundhog/GroundHog), does. Luong et
# al. (section 3.1) describe it with $s_i$: the new state goes through the maxout layer. The paper leaves the biases out
# of its equations. The code has biases everywhere except in the alignment model, which has none in GroundHog either.
#
# ```{literalinclude} ../../nmt/models/bahdanau.py
# :pyobject: Bahdanau.read_out
# :language: python
# ```
#
# One step of the model, checked against the equations of the attention, the decoder and the output:

# %%
torch.manual_seed(2)
source = tiny_language.ids([[*tiny_language.HELD_OUT[0], "</s>"]], tiny_language.SOURCE_WORDS)
target = torch.tensor([[tiny_language.TARGET_WORDS.index("<s>")]])
with torch.no_grad():
    annotations, first = model.annotate(model.source_embedding(source), source != 0)
    logits = model(source, source != 0, target)[0, 0]
    memory = model.remember(annotations, source != 0, first)
    after = model.advance(model.target_embedding(target), first, memory)[1]

    h, s0, y = annotations[0], first.hidden[0], model.target_embedding(target)[0, 0]
    parts = model.attention.attention.scorer
    W_a, U_a, v_a = parts.query_weight[0].T, parts.key_weight[0].T, parts.vector[0]
    torch.testing.assert_close(s0, torch.tanh(model.bridge(h[0, 24:])))  # the backward half of the first annotation
    alpha = torch.softmax(torch.tanh(W_a @ s0 + h @ U_a.T) @ v_a, dim=0)
    c = alpha @ h

    # weight_ih holds [W C] of each gate, weight_hh holds U. r also multiplies U's bias, and z is the paper's 1 - z.
    of_input = (model.cell.weight_ih @ torch.cat([y, c]) + model.cell.bias_ih).chunk(3)
    of_state = (model.cell.weight_hh @ s0 + model.cell.bias_hh).chunk(3)
    r, z = (torch.sigmoid(of_input[gate] + of_state[gate]) for gate in (0, 1))
    proposed = torch.tanh(of_input[2] + r * of_state[2])
    torch.testing.assert_close(after.hidden[0], z * s0 + (1 - z) * proposed)

    t = model.readout.weight @ torch.cat([s0, y, c]) + model.readout.bias  # [U_o V_o C_o], and a bias
    maxout = t.view(-1, 2).amax(dim=1)
    torch.testing.assert_close(logits, model.output.weight @ maxout + model.output.bias)
print("alpha =", alpha.numpy().round(3), "before training")

# %% [markdown]
# ## A small run
#
# The language of `docs/papers/tiny_language.py` has 3,600 sentences, such as "a black cat sees a small dog", in
# Vietnamese "một con mèo đen thấy một con chó nhỏ": the adjective follows the noun, and "con" is a classifier. This
# sentence is left out of training. The paper's example is of the same kind: it finds "European Economic Area" from the
# last word to the first in "zone économique européenne" (section 5.2.1, figure 3). Training takes a few seconds:

# %%
loss = tiny_language.train(model)
english, vietnamese = tiny_language.HELD_OUT
translation = tiny_language.translate(model, english)
print(f"loss {loss:.4f} nats per word")
print(" ".join(english), "->", " ".join(translation))

# %%
cross = tiny_language.attend(model)
axes = cross.plot(title="Bahdanau: each row is the word that the step predicts")

# %% [markdown]
# The columns of "black" and "cat" are read in the order of the Vietnamese words: first the noun, then the adjective.
# The classifier "con" is predicted by looking at the noun that it belongs to. At "một" the weights are spread,
# because "a" is what comes anyway: a word that the model can predict without the source needs no attention.
#
# ## What the paper found
#
# BLEU from English to French (table 1; newstest-2014; sentences of up to 50 words in training). "Known words": only
# sentences without an unknown word in source and reference, and the models must not write [UNK].
#
# | | all sentences | known words |
# | --- | --- | --- |
# | one vector for the source (RNNencdec-50) | 17.82 | 26.71 |
# | attention (RNNsearch-50) | 26.75 | 34.16 |
# | the same, trained much longer | 28.45 | 36.15 |
# | Moses, a phrase-based system with more text | 33.30 | 35.63 |
#
# Without attention, quality falls as sentences get longer. With it, RNNsearch-50 translates sentences of 50 and more
# words no worse than short ones (section 5.1, figure 2).
#
# ## What the paper does differently
#
# - **Sizes** (A.2.3): $n = 1000$ units in the decoder and in each direction of the encoder, embeddings of $m = 620$,
#   $n' = 1000$ hidden units in the alignment model, $l = 500$ after the maxout. Here they are 48, 24, 24, 48 and 24.
# - **Words** (4.1): the 30,000 most frequent ones of each language; all others are one word, [UNK].
# - **Initial weights** (B.1): recurrent matrices are orthogonal; $W_a$ and $U_a$ are normal with a deviation of 0.001;
#   $v_a$ and the biases are 0; all others are normal with a deviation of 0.01. With $v_a = 0$, training starts from
#   equal weights for all words. Here, $W_a$, $U_a$ and $v_a$ are uniform (Glorot's), and all others are torch's.
# - **Training** (B.2): Adadelta with $\epsilon = 10^{-6}$ and $\rho = 0.95$, 80 sentences per update (1,600 at a time
#   are sorted by length and divided), gradients cut to a norm of 1. Here: Adam and 32 sentences.
#
# `experiment=bahdanau2015` has the paper's sizes and optimizer; `configs/experiment/bahdanau2015.yaml` says what still
# differs. On the embedded corpus, `python -m nmt.train model=bahdanau scorer=additive` trains a small model in
# minutes. Next: [Luong et al. 2015](luong2015.py).
