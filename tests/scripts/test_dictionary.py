"""The dictionary that fills gaps in training text: what is read, and what each command makes of it."""

from collections import Counter
from random import Random

import pytest

from nmt.errors import Mistake
from nmt.text.dictionary import Dictionary
from scripts.studies.dictionary import (
    BestTranslation,
    Exchanger,
    Replacer,
    Segmenter,
    best_translations,
    corrected,
    dictionary_table,
    inflected,
    insert_words,
    main,
    most_used,
    own_forms,
    rare_words,
)
from scripts.studies.wiktionary import Entry, english_entries, stored_entries, wiktionary_entries

MEANINGS = "<i>{part}</i><br><ol>{senses}</ol>"


def wiktionary(path, *entries):
    lines = [
        f"{word}\t" + MEANINGS.format(part=part, senses="".join(f"<li>{sense}</li>" for sense in senses))
        for word, part, senses in entries
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return list(wiktionary_entries(path))


def test_a_translation_is_a_meaning_without_labels_and_explanations(tmp_path):
    entries = wiktionary(
        tmp_path / "words.tsv",
        ("động lực|動力", "noun", ["(physics) motive power; motivation (a reason)", "Synonym of động cơ"]),
        ("sách vở", "noun", ["books", "(obsolete) scripture", "the act of learning by heart from books"]),
        ("mệ", "noun", ["(Huế) mom", "(Nghệ An, Hà Tĩnh) grandma", "(Quảng Bình) granny", "(uncommon) mama"]),
        ("à", "particle", ["right"]),
    )
    assert entries == [
        Entry("động lực", "motive power", "noun", 0),
        Entry("động lực", "motivation", "noun", 0),
        Entry("sách vở", "books", "noun", 0),
    ]


@pytest.mark.parametrize(
    ("meaning", "translations"),
    [
        ("R&amp;B singer; soul singer.", ["soul singer"]),
        ("a man who sings in the street", []),
        ("singer; one who sings for money; see also choir; café", ["singer"]),
        ("<b>singer</b> (a <i>person</i>), indicates a profession", ["singer"]),
        ("(informal) singer", []),
        ("(colloquial) singer", []),
        ("(music, slang) singer", []),
        ("(music) singer", ["singer"]),
        ("street singer of old songs", []),  # five words
        ("street singer of songs", ["street singer of songs"]),
    ],
)
def test_what_is_a_translation(tmp_path, meaning, translations):
    entries = wiktionary(tmp_path / "words.tsv", ("歌手|ca sĩ", "noun", [meaning]))
    assert entries == [Entry("ca sĩ", translation, "noun", 0) for translation in translations]


def test_a_word_without_latin_letters_is_left_out(tmp_path):
    assert wiktionary(tmp_path / "words.tsv", ("歌手", "noun", ["singer"])) == []


def test_the_longest_word_is_taken():
    segmenter = Segmenter(["động lực", "động", "Hà Nội"])
    line = "Ở Hà Nội, động lực là chính; động đất"
    spans = [line[start:end] for start, end in segmenter.spans(line)]
    assert spans == ["Ở", "Hà Nội", "động lực", "là", "chính", "động", "đất"]


def test_a_later_sense_makes_no_pair():
    entries = [Entry("động lực", "motivation", "noun", 0), Entry("máy móc", "motivation", "noun", 1)]
    assert most_used(entries, ["động lực"] * 10 + ["máy móc"] * 50) == [("motivation", "động lực")]


@pytest.mark.parametrize(
    ("uses", "pairs"),
    [
        ({"động lực": 2}, ["động lực"]),
        ({"động lực": 1}, []),
        ({"cớ": 20}, ["cớ"]),
        ({"cớ": 19}, []),
        ({"động lực": 10, "động cơ": 3}, ["động lực", "động cơ"]),
        ({"động lực": 11, "động cơ": 3}, ["động lực"]),
        ({"động lực": 9, "cớ": 30}, ["cớ", "động lực"]),  # a syllable counts a third
        ({"động lực": 11, "cớ": 30}, ["động lực", "cớ"]),
        ({"động lực": 9, "động cơ": 8, "nguyên cớ": 7}, ["động lực", "động cơ"]),
    ],
)
def test_pairs_have_the_words_that_the_text_uses_most(uses, pairs):
    entries = [Entry(word, "motivation", "noun", 0) for word in uses]
    text = [word for word, number in uses.items() for _ in range(number)]
    assert most_used(entries, text) == [("motivation", word) for word in pairs]


def test_names_may_have_three_words_and_need_a_capital():
    entries = [
        Entry("Trân Châu Cảng", "Pearl Harbor Bay", "name", 0),
        Entry("hoa hồng", "Rose", "name", 0),
        Entry("Hoa Hồng", "rose", "noun", 0),
        Entry("bình hoa", "vase of flowers", "noun", 0),
    ]
    text = ["Trân Châu Cảng", "hoa hồng", "Hoa Hồng", "bình hoa"] * 9
    assert most_used(entries, text) == [("Pearl Harbor Bay", "Trân Châu Cảng")]


def test_only_words_that_training_text_lacks_are_inserted():
    entries = [
        Entry("động lực", "motivation", "noun", 0),
        Entry("trường học", "school", "noun", 0),
        Entry("thôi miên", "to hypnotize", "verb", 0),
        Entry("mèo", "cat", "noun", 0),
    ]
    text = ["Ở trường học, mèo thiếu động lực.", "Anh ấy đã thôi miên con mèo.", "Trường học có mèo."]
    rows = insert_words(entries, text, Counter(school=40), Random(1))
    assert [row.line for row in rows] == text[:2]
    assert rows[0].mixed in (f"Ở trường học, mèo thiếu {word}." for word in ("motivation", "motivations"))
    assert rows[0].words == [rows[0].mixed.rpartition(" ")[2].rstrip(".")]
    assert rows[1:] == [("Anh ấy đã hypnotized con mèo.", text[1], ["hypnotized"])]


def test_a_word_is_inserted_in_forty_lines_and_a_line_has_three():
    words = [f"{syllable} lực" for syllable in ("một", "hai", "ba", "bốn")]
    entries = [Entry(word, f"force{'abcd'[i]}", "adj", 0) for i, word in enumerate(words)]
    [row] = insert_words(entries, [", ".join(words)], Counter(), Random(1))
    assert len(row.words) == 3
    line = "có một lực ở đây"
    assert len(insert_words(entries, [line] * 50, Counter(), Random(1))) == 40
    assert insert_words(entries, ["có một lực", line + " đây" * 46], Counter(), Random(1)) == []  # 3 and 51 words
    assert len(insert_words(entries, [line + " đây" * 45], Counter(), Random(1))) == 1
    second_sense = [entry._replace(sense=1) for entry in entries]
    assert insert_words(second_sense, [line], Counter(), Random(1)) == []


@pytest.mark.parametrize(
    ("verb", "past", "participle"),
    [
        ("resist", "resisted", "resisting"),
        ("combine", "combined", "combining"),
        ("deny", "denied", "denying"),
        ("rob", "robbed", "robbing"),
        ("agree", "agreed", "agreeing"),
        ("tie", "tied", "tying"),
        ("play", "played", "playing"),
    ],
)
def test_a_verb_follows_the_vietnamese_word_for_its_tense(verb, past, participle):
    assert inflected(verb, {"verb"}, "đã", Random(1)) == past
    assert inflected(verb, {"verb"}, "đang", Random(1)) == participle


def test_a_verb_has_no_irregular_plural():
    assert "knifes" in {inflected("knife", {"verb"}, "", Random(seed)) for seed in range(50)}


@pytest.mark.parametrize(
    ("noun", "plural"),
    [
        *[("lens", "lenses"), ("city", "cities"), ("day", "days"), ("box", "boxes"), ("photo", "photos")],
        *[("tooth", "teeth"), ("wolf", "wolves"), ("roof", "roofs"), ("knife", "knives"), ("hero", "heroes")],
        *[("mailman", "mailmen"), ("woman", "women"), ("human", "humans"), ("talisman", "talismans")],
    ],
)
def test_a_noun_is_plural_after_a_word_for_several(noun, plural):
    assert inflected(noun, {"noun"}, "những", Random(1)) == plural


ENTRIES = [
    Entry("trường học", "school", "noun", 0),
    Entry("thấu kính", "lens", "noun", 0),
    Entry("con voi", "elephant", "noun", 0),
    Entry("xây dựng", "to build", "verb", 0),
    Entry("mở", "to open", "verb", 0),
    Entry("thôi miên", "to hypnotize", "verb", 0),
]
KNOWN = Counter(school=40, build=40, open=40)


def exchanged(source, target, rare):
    return Exchanger(ENTRIES, [rare], KNOWN, Random(1)).exchanged(source, target)


def test_a_word_is_exchanged_on_both_sides_in_its_form():
    lens, elephant = ("lens", "thấu kính"), ("elephant", "con voi")
    assert exchanged("A school closed.", "Một trường học đóng cửa.", lens) == (
        "A lens closed.",
        "Một thấu kính đóng cửa.",
    )
    assert exchanged("Schools closed.", "Trường học đóng cửa.", lens) == ("Lenses closed.", "Thấu kính đóng cửa.")
    assert exchanged("Buy a school.", "Mua một trường học.", elephant) == ("Buy an elephant.", "Mua một con voi.")
    assert exchanged("Wait an hour at a school.", "Chờ một giờ ở một trường học.", elephant) == (
        "Wait an hour at an elephant.",
        "Chờ một giờ ở một con voi.",
    )
    hypnotize = ("to hypnotize", "thôi miên")
    assert exchanged("He opened it.", "Anh ấy đã mở nó.", hypnotize) == ("He hypnotized it.", "Anh ấy đã thôi miên nó.")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("A house closed.", "Một trường học đã đóng cửa."),
        ("A school closed.", "Một ngôi nhà đã đóng cửa."),
        ("A school is a school.", "Trường học là trường học."),
        ("A school've closed.", "Một trường học đã đóng cửa."),  # a part of a contraction is no word
        ("He opened it.", "Anh ấy đã mở nó."),
    ],
)
def test_a_pair_without_an_unambiguous_word_of_the_same_part_of_speech_stays_out(source, target):
    assert exchanged(source, target, ("lens", "thấu kính")) is None


def test_rare_words_take_turns():
    rare = [("lens", "thấu kính"), ("elephant", "con voi"), ("school", "trường học")]
    exchanger = Exchanger(ENTRIES, rare, KNOWN, Random(1))
    sources = Counter(exchanger.exchanged("The school closed.", "Trường học đã đóng cửa.")[0] for _ in range(10))
    assert sources == {"The lens closed.": 5, "The elephant closed.": 5}


def test_a_file_of_another_format_is_refused(tmp_path):
    words = tmp_path / "words.tsv"
    words.write_text("động lực\tmotivation\tnoun\t0\nđộng lực\tmotivation\n", encoding="utf-8")
    with pytest.raises(Mistake, match=r"words\.tsv, line 2: expected a word, .*; make the file with the command read"):
        stored_entries(words, None)


RARE = [
    Entry("súp", "soup", "noun", 0),
    Entry("canh", "soup", "noun", 1),
    Entry("gia cầm", "poultry", "noun", 0),
    Entry("nhìn", "to see", "verb", 0),
    Entry("hạt giống", "seed", "noun", 0),
    Entry("sủa", "to bark", "verb", 0),
    Entry("mèo", "cat", "noun", 0),
]


@pytest.mark.parametrize(
    ("source", "target", "replaced"),
    [
        ("The soup is hot.", "Súp thì nóng.", "The súp is hot."),
        ("Soups and poultry", "Các loại canh và gia cầm", "Canh and gia cầm"),
        ("The dog barked at the cat.", "Con chó sủa con mèo.", "The dog sủa at the cat."),
        ("The soup is hot.", "Cháo thì nóng.", None),
    ],
)
def test_rare_words_are_replaced_by_the_word_of_the_other_line(source, target, replaced):
    """A cat is frequent; each other word is replaced with a probability of 0.8."""
    replacer = Replacer(RARE, Counter(cat=40), Random(1))
    results = Counter(replacer.replaced(source, target) for _ in range(1000))
    number = 2 if source.startswith("Soups") else 1 if replaced else 0
    # Five standard deviations of a binomial distribution around 0.8 to the power of the number of words.
    assert abs(results[replaced] / 1000 - 0.8**number) < 5 * (0.8 * 0.2 / 1000) ** 0.5


TEXT = ["súp"] * 30 + ["canh"] * 40 + ["gia cầm", "hạt giống"] * 5 + ["nhìn", "sủa", "mèo"] * 40


def table_of(entries, text, known):
    return dictionary_table(best_translations(entries, text), known)


def test_a_table_has_the_most_used_translation_of_rare_words_and_their_forms():
    table = table_of(RARE, TEXT, Counter(cat=10, see=2, barking=3))
    assert table == {
        **dict.fromkeys(("bark", "barked", "barks"), "sủa"),
        **dict.fromkeys(("poultry", "poultries"), "gia cầm"),
        **dict.fromkeys(("see", "seeing", "sees"), "nhìn"),  # "seed" is a word of its own
        **dict.fromkeys(("seed", "seeds"), "hạt giống"),
        **dict.fromkeys(("soup", "soups"), "súp"),
    }
    assert Dictionary(table).replaced("Poultry soup") == "Gia cầm súp"


def noun(word, sense, english="soup"):
    return Entry(word, english, "noun", sense)


def test_a_form_with_another_translation_is_a_word_of_its_own():
    best = best_translations(RARE, TEXT)
    assert set(rare_words(best, Counter(), {"seed"})) == {"seed"}
    assert set(rare_words(best, Counter(seed=40), {"seed"})) == set()
    assert own_forms("see", best) == ["see", "seeing", "sees"]


@pytest.mark.parametrize(
    ("entries", "table"),
    [
        ([noun("tục", 0, "custom"), noun("súp", None, "customs")], {"custom": "tục", "customs": "súp"}),
        ([noun("tục", 0, "custom"), noun("súp", 0, "customs")], {"custom": "tục", "customs": "tục"}),
        ([noun("tục", 0, "story"), noun("súp", 0, "stories")], {"story": "tục", "stories": "tục"}),
        ([noun("tục", 0, "box"), noun("súp", 0, "boxes")], {"box": "tục", "boxes": "tục"}),
        ([noun("súp", 0, "chaos")], {"chaos": "súp"}),  # without a singular, and without another plural
        ([Entry("tục", "basic", "adj", 0), noun("súp", 0, "basics")], {"basic": "tục", "basics": "súp"}),
        ([Entry("súp", "nails", "verb", 0)], {}),  # of "to start growing hair, nails"
    ],
)
def test_a_plural_is_a_word_of_its_own_in_an_english_dictionary_or_without_a_singular(entries, table):
    assert table_of(entries, TEXT + ["tục"] * 9, Counter()) == table


def test_corrections_replace_words_and_leave_others_out_in_all_their_forms(tmp_path):
    file, best = tmp_path / "corrections.tsv", best_translations(RARE, TEXT)
    file.write_text("soup\tthuỷ\nbark\t-\nseed\t-\n", encoding="utf-8")
    table = dictionary_table(best, Counter())
    new = {**table, "soup": "thủy", "soups": "thủy"}
    left_out = ("bark", "barked", "barking", "barks", "seed", "seeds")  # "seed" does not become the past of "see"
    assert dictionary_table(corrected(best, file, "old"), Counter()) == {
        word: translation for word, translation in new.items() if word not in left_out
    }
    unclear = {"soup": best["soup"]._replace(share=0.1)}
    assert dictionary_table(unclear, Counter(soup=1)) == {}
    file.write_text("soup\txúp\n", encoding="utf-8")
    assert dictionary_table(corrected(unclear, file, None), Counter(soup=1))["soup"] == "xúp"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("soup\n", "line 1: expected an English word, a tab, and a translation or -"),
        ("soup\t \n", "line 1: expected an English word, a tab, and a translation or -"),
        ("soup\txúp\tx\n", "line 1: expected an English word, a tab, and a translation or -"),
        ("soup\txúp\nsoups\txúp\n", "line 2: 'soups' has no translation to be corrected; remove the line"),
        ("soup\txúp\nsee\tx\nsoup\tx\n", "line 3: 'soup' is already in line 1; keep one of them"),
    ],
)
def test_other_corrections_are_refused(tmp_path, lines, message):
    file = tmp_path / "corrections.tsv"
    file.write_text(lines, encoding="utf-8")
    with pytest.raises(Mistake, match=rf"corrections\.tsv, {message}"):
        corrected(best_translations(RARE, TEXT), file, None)


@pytest.mark.parametrize(
    ("entries", "best"),
    [
        ([noun("súp", 0), noun("canh", 0)], "canh"),  # used more
        ([noun("súp", 0), noun("canh", 1)], "súp"),  # a later sense does not count
        ([noun("canh", 3)], None),
        ([noun("canh", 0), noun("súp", 4), noun("súp", None)], "súp"),  # in both dictionaries, whatever the sense
        ([noun("canh", 0), noun("xúp", 0), noun("xúp", None)], "canh"),  # unless it is never used
        ([noun("súp", 0), noun("canh", None)], "canh"),
        ([noun("soup", None), noun("súp", None)], "súp"),  # not the word itself
        ([noun("Súp", 0)], None),  # a name
        ([noun("thịt kho", 0)], "thịt kho"),  # never used, but spelled as in the other dictionary
        ([noun("thịt kho", None)], None),  # never used, of rare syllables
        ([noun("súp canh", None)], None),  # the syllable "súp" is used 30 times
        ([noun("canh canh", None), noun("canh", None, "broth")], "canh canh"),  # of common syllables
        ([noun("canh", 0), noun("gia cầm", 0)], "canh"),  # 60 uses of a syllable count 20, more than 5
        ([noun("canh", 0), noun("xe hơi", 0)], "xe hơi"),  # 21 uses count more than 20
    ],
)
def test_the_best_translation(entries, best):
    text = ["súp"] * 30 + ["canh"] * 60 + ["gia cầm"] * 5 + ["xe hơi"] * 21
    result = best_translations(entries, text)
    assert (result["soup"].word if "soup" in result else None) == best


def best_of(part, share, is_in_english_vietnamese, word="word", uses=1):
    return {word: BestTranslation("từ", part, share, uses, is_in_english_vietnamese)}


@pytest.mark.parametrize(
    ("best", "fewer_than"),
    [
        (best_of("noun", 0.6, True), 20),
        (best_of("adj", 0.6, True), 20),
        (best_of("noun", 0.6, False), 10),
        (best_of("noun", 0.59, True), 3),
        (best_of("verb", 1.0, True), 3),
        (best_of("verb", 0.4, False), 3),
        (best_of("noun", 0.39, True), 1),
        (best_of("noun", 1.0, True, uses=0), 3),
        (best_of("adj", 1.0, True, "interrupted"), 3),
        (best_of("adj", 1.0, True, "amazing"), 3),
        (best_of("noun", 1.0, True, "wedding"), 20),
    ],
)
def test_a_word_must_be_rarer_if_its_translation_is_in_doubt(best, fewer_than):
    [word] = best
    assert word in dictionary_table(best, Counter({word: fewer_than - 1}))
    assert word not in dictionary_table(best, Counter({word: fewer_than}))
    assert f"{word}s" not in dictionary_table(best, Counter({f"{word}s": fewer_than}))


def test_an_english_dictionary_is_read_without_letters_labels_and_remarks(tmp_path):
    english = tmp_path / "english.txt"
    english.write_text(
        "# a comment\n"
        "soup {n} (dish) :: canh, soup\n"
        "bee {n} (name of the letter B, b) :: bê, bờ\n"
        "bee {n} (insect) :: ong\n"
        "abate {v} (obsolete: to bring down) :: hủy bỏ\n"
        "to see off {v} (to escort) :: tiễn\n"
        "bark {v} (to make a loud noise (dogs)) :: sủa ; (con chó) kêu\n"
        "cat {n} :: /con/ mèo\n"
        "mum {n} (mother (informal, familiar)) :: mẹ\n"
        "bark {n} ((archaic) small boat) :: thuyền\n"
        "samurai {n} (warrior) :: [rare] thị (侍), hoả [rare], [Southern, dated] võ, võ sĩ [formal]\n",
        encoding="utf-8",
    )
    assert list(english_entries(english)) == [
        Entry("canh", "soup", "noun", None),
        Entry("soup", "soup", "noun", None),
        Entry("ong", "bee", "noun", None),
        Entry("sủa", "to bark", "verb", None),
        Entry("kêu", "to bark", "verb", None),
        Entry("mèo", "cat", "noun", None),
        Entry("mẹ", "mum", "noun", None),
        Entry("võ sĩ", "samurai", "noun", None),
    ]


def test_stored_entries_are_those_that_were_read(tmp_path):
    words = tmp_path / "words.tsv"
    words.write_text("hòa bình\tpeace\tnoun\t0\ncanh\tsoup\tnoun\t-\n", encoding="utf-8")
    assert stored_entries(words, "new") == [Entry("hoà bình", "peace", "noun", 0), Entry("canh", "soup", "noun", None)]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Small files for every command, in the working folder."""
    monkeypatch.chdir(tmp_path)
    wiktionary(
        tmp_path / "wiktionary.tsv", ("súp", "noun", ["soup"]), ("xe", "noun", ["car"]), ("voi", "noun", ["elephant"])
    )
    contents = {
        "english.txt": "soup {n} (dish) :: canh\n",
        "mono.vi": "súp súp canh xe voi\n" * 30,
        "known.en": "The car is new.\n" * 40 + "Soup!\n",
        "frequent.txt": "soups 123\ncar 99\n",
        "animals.txt": "elephant 1\n",
        "corpus.en": "The car is new.\n",
        "corpus.vi": "Xe thì mới.\n",
        "eaten.en": "I eat soup.\n",
        "eaten.vi": "Tôi ăn súp.\n",
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run_command(line):
    main(line.split())


def test_the_commands_work_on_each_others_files(files, capsys):
    run_command("read wiktionary.tsv --english english.txt")
    words = capsys.readouterr().out
    assert words == "súp\tsoup\tnoun\t0\nxe\tcar\tnoun\t0\nvoi\telephant\tnoun\t0\ncanh\tsoup\tnoun\t-\n"
    (files / "words.tsv").write_text(words, encoding="utf-8")
    run_command("table words.tsv mono.vi --known known.en --out table.tsv")
    table = Dictionary.load(files / "table.tsv")
    assert table.replaced("An elephant, a car, some soup") == "An voi, a car, some súp"
    (files / "corrections.tsv").write_text("elephant\tcon voi\n", encoding="utf-8")
    run_command("table words.tsv mono.vi --known known.en --corrections corrections.tsv --out table.tsv")
    assert Dictionary.load(files / "table.tsv").replaced("an elephant") == "an con voi"
    run_command(
        "pairs words.tsv mono.vi --known known.en --frequent animals.txt --corrections corrections.tsv --out pairs"
    )
    assert set((files / "pairs.vi").read_text(encoding="utf-8").splitlines()) == {"con voi"}
    run_command("replace words.tsv --known known.en --corpora eaten --out replaced")
    assert (files / "replaced.en").read_text(encoding="utf-8") == "I eat súp.\n"
    assert (files / "replaced.vi").read_text(encoding="utf-8") == "Tôi ăn súp.\n"
    run_command("exchange words.tsv mono.vi --known known.en --corpora corpus --variants 4 --out new")
    assert Counter((files / "new.en").read_text(encoding="utf-8").splitlines()) == {
        f"The {word} is new.": 2 for word in ("soup", "elephant")
    }
    run_command(
        "exchange words.tsv mono.vi --known known.en --corpora corpus --variants 1 --frequent frequent.txt --out new"
    )
    assert (files / "new.en").read_text(encoding="utf-8") == "The soup is new.\n"  # elephants are not frequent
    assert (files / "new.vi").read_text(encoding="utf-8") == "Súp thì mới.\n"
    run_command("pairs words.tsv mono.vi --known known.en --frequent frequent.txt --out pairs")
    assert sorted((files / "pairs.en").read_text(encoding="utf-8").split()) == ["soup", "soups"]


def test_words_are_inserted_by_command(files):
    (files / "words.tsv").write_text("xe lửa\ttrain\tnoun\t0\n", encoding="utf-8")
    (files / "lines.vi").write_text("Tôi đi xe lửa.\nTôi đi bộ ở đây.\n", encoding="utf-8")
    run_command("insert words.tsv lines.vi --known known.en --out new")
    assert (files / "new.vi").read_text(encoding="utf-8") == "Tôi đi xe lửa.\n"
    word = (files / "new.words").read_text(encoding="utf-8").strip()
    assert word in ("train", "trains")
    assert (files / "new.mixed").read_text(encoding="utf-8") == f"Tôi đi {word}.\n"


def test_tone_marks_are_those_asked_for(files):
    (files / "words.tsv").write_text("hoà bình\tpeace\tnoun\t0\n", encoding="utf-8")
    (files / "lines.vi").write_text("hòa bình và hoà bình\n", encoding="utf-8")
    run_command("table words.tsv lines.vi --known known.en --tone-marks old --out table.tsv")
    assert Dictionary.load(files / "table.tsv").translations == dict.fromkeys(("peace", "peaces"), "hòa bình")
    (files / "peace.en").write_text("We want peace.\n", encoding="utf-8")
    (files / "peace.vi").write_text("Chúng tôi muốn hoà bình.\n", encoding="utf-8")
    run_command("replace words.tsv --known known.en --corpora peace --tone-marks old --out new")
    assert (files / "new.vi").read_text(encoding="utf-8") == "Chúng tôi muốn hòa bình.\n"


def test_corrections_without_frequent_words_are_refused(files, capsys):
    for command in ("pairs words.tsv mono.vi", "exchange words.tsv mono.vi --known known.en --corpora corpus"):
        with pytest.raises(SystemExit):
            run_command(f"{command} --corrections none.tsv --out new")
        assert "add --frequent, or leave it out" in capsys.readouterr().err


def test_words_that_are_rare_need_training_text(files, capsys):
    (files / "words.tsv").write_text("súp\tsoup\tnoun\t0\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        run_command("pairs words.tsv mono.vi --frequent frequent.txt --out pairs")
    assert "name it with --known" in capsys.readouterr().err
    (files / "many.en").write_text("Soup and soups\n" * 40, encoding="utf-8")
    with pytest.raises(
        Mistake, match=r"words\.tsv has no word of frequent\.txt that is rare in many\.en; give a longer"
    ):
        run_command("pairs words.tsv mono.vi --known many.en --frequent frequent.txt --out pairs")
    with pytest.raises(
        Mistake, match=r"words\.tsv are in too many lines of many\.en for the dictionary; give a larger"
    ):
        run_command("table words.tsv mono.vi --known many.en --out table.tsv")
