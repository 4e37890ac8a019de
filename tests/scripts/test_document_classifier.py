"""scripts/studies/document_classifier.py: laws of the two levels, the paper's formula in loops, documents and sides."""

import math
from random import Random

import pytest
import torch
from torch import nn

from nmt.config.direction import Direction
from nmt.errors import Mistake
from nmt.text import PAD, UNK
from scripts.studies import document_classifier as script

WORDS, CLASSES, DIM = 13, 3, 5
# Documents of 3, 1 and 2 sentences of different lengths.
SENTENCES = [[[5, 2, 7, 2], [9], [3, 12]], [[4, 1, 6]], [[8, 8, 8, 11, 2], [10, 5]]]


def padded(documents, extra_sentences=0, extra_words=0):
    """(documents, sentences, words) with as much padding as needed, and more."""
    rows = max(len(document) for document in documents) + extra_sentences
    width = max(len(sentence) for document in documents for sentence in document) + extra_words
    batch = torch.full((len(documents), rows, width), PAD)
    for d, document in enumerate(documents):
        for i, sentence in enumerate(document):
            batch[d, i, : len(sentence)] = torch.tensor(sentence)
    return batch


@pytest.fixture
def model():
    torch.manual_seed(5)
    return script.network(True, WORDS, CLASSES, DIM).double()


def levels(model):
    return model.of_words, model.of_sentences


# Laws


def test_u_of_zero_gives_the_mean_and_is_the_network_with_equal_weights(model):
    for level in levels(model):
        level.attention.scorer.vector.data.zero_()
    found = model(padded(SENTENCES))
    for d, document in enumerate(SENTENCES):
        expected = torch.full((len(document),), 1 / len(document)).double()
        torch.testing.assert_close(found.sentences[d, : len(document)], expected)
        for i, sentence in enumerate(document):
            expected = torch.full((len(sentence),), 1 / len(sentence)).double()
            torch.testing.assert_close(found.words[d, i, : len(sentence)], expected)
    equal = script.network(False, WORDS, CLASSES, DIM).double()
    assert not equal.load_state_dict(model.state_dict(), strict=False).missing_keys
    for ours, theirs in zip(found, equal(padded(SENTENCES)), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_only_sentence_has_all_weight(model):
    found = model(padded([SENTENCES[1]]))
    assert found.sentences.tolist() == [[1.0]]
    assert model(padded([[[4]]])).words.tolist() == [[[1.0]]]


def test_padding_has_weight_exactly_zero_and_is_not_read(model):
    tight, roomy = padded(SENTENCES), padded(SENTENCES, extra_sentences=2, extra_words=3)
    found, expected = model(roomy), model(tight)
    assert (found.words[roomy == PAD] == 0).all()
    assert (found.sentences[(roomy != PAD).sum(dim=-1) == 0] == 0).all()
    torch.testing.assert_close(found.logits, expected.logits)
    torch.testing.assert_close(found.words[roomy != PAD], expected.words[tight != PAD])
    torch.testing.assert_close(found.words.sum(dim=-1), ((roomy != PAD).sum(dim=-1) > 0).double())
    torch.testing.assert_close(found.sentences.sum(dim=-1), torch.ones(len(SENTENCES)).double())
    model.embedding.weight.data[PAD] = math.nan
    assert model(roomy).logits.equal(found.logits)


def test_a_batch_is_its_documents_one_by_one(model):
    together = model(padded(SENTENCES))
    for d, document in enumerate(SENTENCES):
        alone, width = model(padded([document])), max(len(sentence) for sentence in document)
        torch.testing.assert_close(together.logits[d], alone.logits[0])
        torch.testing.assert_close(together.sentences[d, : len(document)], alone.sentences[0])
        torch.testing.assert_close(together.words[d, : len(document), :width], alone.words[0])


# The formula


def summed_up(level: script.Level, inputs):
    """sum_t a_t h_t and a, a = softmax_t(u . tanh(W h_t + b)), by loops; h by the GRU, one step after another."""
    scorer = level.attention.scorer
    W, b, u = scorer.key_weight[0].T, scorer.query_weight[0, 0], scorer.vector[0]
    ways = []
    for suffix, order in (("", range(len(inputs))), ("_reverse", reversed(range(len(inputs))))):
        cell = nn.GRUCell(inputs.shape[1], DIM).double()
        cell.load_state_dict({name: level.encoder.get_parameter(f"{name}_l0{suffix}") for name in cell.state_dict()})
        state, states = torch.zeros(1, DIM).double(), {}
        for t in order:
            states[t] = state = cell(inputs[t : t + 1], state)
        ways.append(states)
    h = [torch.cat([way[t][0] for way in ways]) for t in range(len(inputs))]
    exponentials = [torch.exp(u @ torch.tanh(W @ h_t + b)) for h_t in h]
    weights = torch.stack([e / sum(exponentials) for e in exponentials])
    return sum(a_t * h_t for a_t, h_t in zip(weights, h, strict=True)), weights


def test_both_levels_are_the_formula_of_the_paper(model):
    found = model(padded(SENTENCES))
    for d, document in enumerate(SENTENCES):
        vectors = []
        for i, sentence in enumerate(document):
            vector, weights = summed_up(model.of_words, model.embedding.weight[sentence])
            torch.testing.assert_close(found.words[d, i, : len(sentence)], weights)
            vectors.append(vector)
        vector, weights = summed_up(model.of_sentences, torch.stack(vectors))
        torch.testing.assert_close(found.sentences[d, : len(document)], weights)
        torch.testing.assert_close(found.logits[d], model.output.weight @ vector + model.output.bias)


def test_attention_finds_the_word_that_decides():
    """One word of 24 says the class; the others are drawn at random."""
    random = Random(2)

    def document(label):
        sentences = [[random.choice("abcdefghijkl") for _ in range(6)] for _ in range(4)]
        sentences[random.randrange(4)][random.randrange(6)] = ("yes", "no")[label]
        return script.Document(sentences, label, "")

    training, test = ([document(k % 2) for k in range(n)] for n in (300, 60))
    numbers = script.vocabulary(training)
    torch.manual_seed(1)
    model = script.network(True, len(numbers) + 4, 2, 16)
    script.learn(model, training, numbers, epochs=6)
    assert sum(script.right(model, test, numbers)) > 50
    words = script.collate(test, numbers)
    reading = model(words)
    weights = reading.sentences[:, :, None] * reading.words
    decides = (words == numbers["yes"]) | (words == numbers["no"])
    # The GRUs carry the word to its neighbors, which may get some of its weight.
    assert weights[decides].mean() > 8 / 24


# Documents


@pytest.fixture
def corpus(tmp_path):
    """A corpus of two texts of 5 and 4 lines, of which one has no words."""
    lines = ["Mai's book, no. 1!", "b b", "...", "c", "d", "E", "f", "g", "h"]
    for name in ("all.en", "all.vi"):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "all.doc").write_text("one\n" * 5 + "two\n" * 4, encoding="utf-8")
    return tmp_path / "all"


def read(prefix, lines):
    return script.labeled_documents(str(prefix), 1, Direction("en", "vi"), lines)


def test_documents_stay_within_the_texts_of_their_corpus(corpus):
    first = [["mai", "s", "book", "no", "1"], ["b", "b"], ["c"]]
    assert read(corpus, 3) == [
        script.Document(first, 1, "0"),
        script.Document([["e"], ["f"], ["g"]], 1, "1"),
    ]
    corpus.with_suffix(".doc").unlink()
    without = read(corpus, 3)
    assert [document.sentences for document in without] == [first, [["d"], ["e"], ["f"]]]
    assert len({document.text for document in without}) == 2


def test_no_text_is_on_both_sides():
    documents = [script.Document([["a"]], 0, f"text {k % 25}") for k in range(100)]
    training, test = script.split(documents, seed=3)
    assert (len(training), len(test)) == (80, 20)
    assert not {d.text for d in training} & {d.text for d in test}
    assert script.split(documents, seed=3) == (training, test)
    assert script.split(documents, seed=4) != (training, test)


def test_rare_words_are_unknown():
    numbers = script.vocabulary([script.Document([["a", "b", "a"], ["a", "b"]], 0, "")])
    assert list(numbers) == ["a"]
    assert numbers["a"] > max(PAD, UNK)
    documents = [script.Document([["b", "a"]], 0, ""), script.Document([["a"], ["a", "c", "a"]], 0, "")]
    a = numbers["a"]
    assert script.collate(documents, numbers).tolist() == [
        [[UNK, a, PAD], [PAD, PAD, PAD]],
        [[a, PAD, PAD], [a, UNK, a]],
    ]


# Statistics


def test_the_interval_s_ends_are_1_96_standard_deviations_away():
    """Wilson: |p - x| = z sqrt(x (1 - x) / n) for both ends x."""
    for successes, trials in ((8, 10), (0, 7), (7, 7), (150, 200)):
        for end in script.wilson(successes, trials):
            distance = 1.96 * math.sqrt(max(0, end * (1 - end)) / trials)
            assert abs(successes / trials - end) == pytest.approx(distance, abs=1e-7)


def test_the_sign_test_is_that_of_a_fair_coin():
    assert script.sign_test(5, 0) == script.sign_test(0, 5) == 2 / 32
    assert script.sign_test(3, 3) == script.sign_test(0, 0) == 1
    assert script.sign_test(1, 3) == 2 * (1 + 4) / 16


# Output and messages


def test_the_most_weight_comes_first(model):
    numbers = {f"w{n}": n for n in range(1, WORDS)}
    document = script.Document([[f"w{n}" for n in sentence] for sentence in SENTENCES[0]], 0, "")
    reading = model(padded(SENTENCES[:1]))
    first, second = reading.sentences[0].argsort(descending=True)[:2].tolist()
    rows = script.describe(model, document, numbers).splitlines()
    assert rows[0] == f"  {reading.sentences[0, first]:.2f} {' '.join(document.sentences[first])}"
    assert rows[2] == f"  {reading.sentences[0, second]:.2f} {' '.join(document.sentences[second])}"
    best = reading.words[0, first].argmax()
    assert rows[1].split(",")[0] == f"       {document.sentences[first][best]} {reading.words[0, first, best]:.2f}"


def test_compares_two_corpora_and_draws_one_picture(tmp_path, capsys):
    given = ["--out", str(tmp_path / "d.png"), "--documents", "10", "--epochs", "1", "--dim", "3", "--seeds", "4", "2"]
    script.main(given)
    assert (tmp_path / "d.png").read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    for seed in (4, 2):
        assert f"seed {seed}, training + test documents: sample:train 8 + 2, sample:phrases 8 + 2\n" in printed
    assert printed.count("  most frequent corpus   50.0% correct (15.0% to 85.0%)\n") == 2


def test_refuses_what_cannot_be_compared(corpus, tmp_path):
    with pytest.raises(Mistake, match=r"^--lines is 0; it must be at least 1\.$"):
        script.main(["--lines", "0"])
    for corpora in (["sample:train"], ["sample:train", "sample:train"]):
        with pytest.raises(Mistake, match=r"^The corpora are sample:train.*; give two or more different ones\.$"):
            script.main(corpora)
    with pytest.raises(Mistake, match=r"^There are documents of 2 texts, but it takes 5 to hold one out; lower "):
        script.main(["sample:train", str(corpus)])
    corpus.with_suffix(".doc").write_text("one\n", encoding="utf-8")
    with pytest.raises(Mistake, match=r"all\.doc has 1 lines but the text has 9; line n must name the document"):
        read(corpus, 3)
