"""Other languages: text from TEI and from pages, held-out novels, words in pieces, the probe and its table."""

import lzma

import numpy as np

from benchmarks import languages, novels
from elmo_tf.annotated.columns import Tagged

_TEI = """<?xml version="1.0" encoding="UTF-8"?>
<TEI xmlns="http://www.tei-c.org/ns/1.0">
  <teiHeader><encodingDesc><p>about the file</p></encodingDesc></teiHeader>
  <text>
    <front><div><p>a foreword</p></div></front>
    <body>
      <div><head>I.</head>
        <p>Kopasz,   sziklás
           bér<pb n="2"/>czek <hi rend="italic">emelkednek</hi><note n="1">a note</note> itt.</p>
        <quote><l>a verse</l></quote>
        <p>Ő: <quote><p>„igen”</p></quote> - s elment.</p>
        <p> </p>
        <p>Cafe\u0301 &amp; Co.</p>
      </div>
    </body>
  </text>
</TEI>"""


def test_tei_becomes_the_paragraphs_of_its_prose():
    assert list(novels.tei_paragraphs(_TEI.encode())) == [
        "Kopasz, sziklás bérczek emelkednek itt.",
        "Ő: - s elment.",
        "„igen”",
        "Caf\u00e9 & Co.",
    ]


def test_pages_become_the_lines_between_their_breaks_up_to_a_script():
    pages = ["&nbsp;&nbsp;本书<b>中</b>。<br><br>\u3000\u3000二<script></div>\n<a>x</a>", "<p>三</p>四"]
    assert list(novels.html_paragraphs(pages)) == ["本书中。", "二", "三", "四"]


def test_words_are_runs_of_letters_or_single_ideographs():
    assert novels.num_words("Május 12-én, 我在2024年 п'ять") == 3 + 2 + 2 + 2


def test_whole_novels_are_held_out_and_train_up_to_the_limit(monkeypatch):
    monkeypatch.setattr(novels, "_HELDOUT_NOVELS", 1)
    monkeypatch.setattr(novels, "_HELDOUT_WORDS", 3)
    monkeypatch.setattr(novels, "_TRAIN_WORDS", 5)
    # By SHA-256: c (2e7d), b (3e23), a (ca97).
    texts = {"a": ["a b", "c"], "b": ["d e f"], "c": ["g h", "i", "j"]}
    contents = novels.divided({name: lambda lines=lines: lines for name, lines in texts.items()})
    assert contents == {"heldout.txt.xz": b"g h\ni\n", "train.txt.xz": b"d e f\n"}


def test_a_words_pieces_are_those_of_the_tokenizer():
    tokens, spans = languages.pieces_of([Tagged(["我們", "去"], None), Tagged(["aujourd'hui", "п'ять"], None)])
    assert tokens == [["我", "們", "去"], ["aujourd", "'", "hui", "п'ять"]]
    assert spans == [[(0, 2), (2, 3)], [(0, 3), (3, 4)]]


def test_a_words_later_pieces_are_inside_its_entity():
    tagged = [Tagged(["林肯", "去", "aujourd'hui"], ["B-PER", "O", "I-LOC"]), Tagged(["a"], ["B-ORG"])]
    assert languages.columns_of_pieces(tagged).decode().splitlines() == [
        *("林\tB-PER", "肯\tI-PER", "去\tO", "aujourd\tI-LOC", "'\tI-LOC", "hui\tI-LOC", ""),
        "a\tB-ORG",
    ]


def test_named_entities_are_learned_from_pieces_without_and_with_the_model(tmp_path, monkeypatch):
    (tmp_path / "ner_chinese").mkdir()
    for part in ("train", "dev", "test"):
        (tmp_path / "ner_chinese" / f"{part}.conll.xz").write_bytes(lzma.compress("林肯\tB-PER\n".encode()))
    (tmp_path / "out").mkdir()
    commands = []
    monkeypatch.setattr(languages, "elmo_tf_command", lambda *command: commands.append(command) or '{"score": 1}')
    run = languages.Run("chinese", tmp_path, tmp_path / "out", 0.25)
    assert [languages.entities(system, run) for system in ("without", "tiny")] == [{"score": 1}] * 2
    assert (tmp_path / "out/entities/dev.conll").read_text("utf-8") == "林\tB-PER\n肯\tI-PER\n"
    assert ["--model" in command for command in commands] == [False, True]


def test_accuracies_leave_out_words_without_a_label_and_count_new_words_apart():
    train = [Tagged(["a", "b", "x"], ["A", "B", ""]), Tagged(["a", "c"], ["B", "B"])]
    test = [Tagged(["a", "b", "x", "d", "e"], ["A", "B", "", "A", "B"])]
    vectors = [np.array([[1], [-1], [0], [-1], [-1]], np.float32), np.array([[1], [-1], [0], [1], [1]], np.float32)]
    new = np.array([False, False, False, True, True])
    assert languages.accuracies(vectors, train, test, {0, 1}, new) == {
        "train_words": 4,
        "words": 4,
        "new_words": 2,
        "accuracy": 0.75,
        "accuracy_new": 0.5,
        "most_frequent": 0.75,  # `a` has both labels; the first counts
        "most_frequent_new": 0.5,
    }
    few = languages.accuracies(vectors, train, test, {0}, np.zeros(5, bool))
    assert (few["train_words"], few["new_words"], few["accuracy_new"]) == (2, 0, None)


def test_the_tables_have_a_model_per_line_and_a_line_for_new_words():
    def scores(accuracy):
        row = {"words": 40, "new_words": 0, "most_frequent": 0.5, "most_frequent_new": None}
        return {"labels": {"upos": {"910": row | {"accuracy": accuracy, "accuracy_new": None}}}}

    stages = {
        "text": {"tokens": 1234567},
        "tiny": {"passes": 0.5},
        "evaluate": {
            "vocabulary": 4321,
            "unknown_rate": 0.0321,
            "perplexity": 123.46,
            "unigram_perplexity": 987.66,
            "bytes": 15_200_000,
        },
        "scores_tiny": scores(0.9) | {"sentences_per_cpu_second": 99.6},
        "scores_fasttext": scores(0.8),
        "scores_untrained": scores(0.7),
        "entities_without": {"score": 60.04, "train_examples": 1234},
        "entities_tiny": {"score": 70.06, "train_examples": 1234},
    }
    assert languages.tables({"hungarian": stages}).splitlines() == [
        "language   tokens     passes  vocabulary  unknown  perplexity  unigram  sentences/s  MB",
        "hungarian  1,234,567  0.50    4,321       3.2%     123.5       987.7    100          15.2",
        "",
        "language   label  sentences  words  most frequent  untrained  fasttext  tiny",
        "hungarian  upos   910        40     50.0           70.0       80.0      90.0",
        "hungarian  upos   910        0 new  -              -          -         -",
        "",
        "language   sentences  F1 without  F1 with tiny",
        "hungarian  1,234      60.0        70.1",
    ]
