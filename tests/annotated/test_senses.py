"""Word senses: SemCor's columns, WordNet's index and Raganato's framework."""

import pytest

from elmo_tf.annotated import senses
from elmo_tf.errors import InputError
from tests.annotated.text_file import assert_refused, write

SEMCOR = """# doc a/one
The\tDT\tthe\t_
grand_jury\tNN\tgrand_jury\tgrand_jury%1:14:00::
recent\tJJ\trecent\trecent%5:00:00:past:00

# doc a/two
_\t_\t_\t_
played\tVB\tplay\tplay%2:33:00::;2:33:01::
"""


def test_semcor_has_words_documents_and_senses(tmp_path):
    first, second = senses.read_semcor(write(tmp_path, SEMCOR))
    assert (first.document, second.document) == ("a/one", "a/two")
    assert first.tokens == ["The", "grand", "jury", "recent"]
    assert first.uses == [
        (1, 3, "grand_jury%1", "grand_jury%1:14:00::", ()),
        # Satellite adjectives count as adjectives.
        (3, 4, "recent%3", "recent%5:00:00:past:00", ()),
    ]
    assert second.tokens == ["_", "played"]
    # Of two senses, the first is read.
    assert second.uses == [(1, 2, "play%2", "play%2:33:00::", ())]


def test_first_senses_are_those_with_number_one(tmp_path):
    index = "play%2:33:00:: 01072949 1 107\nplay%2:36:00:: 01714208 2 50\nrecent%5:00:00:past:00 01 1 11\n"
    first = senses.read_first_senses(write(tmp_path, index))
    assert first == {"play%2": "play%2:33:00::", "recent%3": "recent%5:00:00:past:00"}


@pytest.mark.parametrize(
    ("read", "text", "message", "line"),
    [
        (senses.read_semcor, "a\tb\tc\n", "form, part of speech, .*", 1),
        (senses.read_semcor, "a\tb\tc\tsense\n", "a sense key such as .*, found 'sense'", 1),
        (senses.read_semcor, "# doc a\n", "it has no sentence", None),
        (senses.read_first_senses, "play%2:33:00:: 1 1\n", "a sense key, .*", 1),
        (senses.read_first_senses, "play 01072949 1 107\n", "a sense key such as .*", 1),
        (senses.read_first_senses, "a%1:03:00:: 01 2 3\n", "it has no first sense", None),
    ],
)
def test_a_line_of_another_format_is_refused(tmp_path, read, text, message, line):
    assert_refused(read, write(tmp_path, text), message, line)


DATA = """<?xml version="1.0" encoding="UTF-8" ?>
<corpus lang="en" source="senseval2">
<text id="d000">
<sentence id="d000.s000">
<wf lemma="the" pos="DET">The</wf>
<instance id="d000.s000.t000" lemma="art" pos="NOUN">art</instance>
<instance id="d000.s000.t001" lemma="change_ringing" pos="NOUN">change_ringing</instance>
<wf lemma="&amp;" pos=".">-LRB-</wf>
</sentence>
</text>
<text id="d001">
<sentence id="d001.s000">
<instance id="d001.s000.t000" lemma="long" pos="ADJ">long</instance>
</sentence>
</text>
</corpus>
"""
GOLD = """d000.s000.t000 art%1:09:00:: art%1:06:00::
d000.s000.t001 change_ringing%1:04:00::
d001.s000.t000 long%5:00:00:extended:00
"""


def test_instances_have_their_senses_and_documents_their_names(tmp_path):
    write(tmp_path, GOLD, "a.gold.key.txt")
    first, second = senses.read_senses(write(tmp_path, DATA, "a.data.xml"))
    assert (first.document, second.document) == ("d000", "d001")
    assert first.tokens == ["The", "art", "change", "ringing", "("]
    assert first.uses == [
        (1, 2, "art%1", "art%1:09:00::", ("art%1:06:00::",)),
        (2, 4, "change_ringing%1", "change_ringing%1:04:00::", ()),
    ]
    assert second.uses == [(0, 1, "long%3", "long%5:00:00:extended:00", ())]


def test_a_file_without_its_keys_or_of_another_kind_is_refused(tmp_path):
    assert_refused(senses.read_senses, write(tmp_path, "a\tb\n"), "form, part of speech, ", line=1)
    for name, data, gold, message in (
        ("other.xml", DATA, None, "other.xml: the framework's files are called NAME.data.xml and NAME.gold"),
        ("a.data.xml", DATA, None, "a.gold.key.txt: no such file$"),
        ("a.data.xml", DATA, GOLD.replace("d000.s000.t001", "x"), "'d000.s000.t001' has no sense in the gold keys$"),
        ("a.data.xml", DATA[:-20], GOLD, "a.data.xml: it cannot be read as XML: "),
    ):
        if gold is not None:
            write(tmp_path, gold, "a.gold.key.txt")
        with pytest.raises(InputError, match=message):
            senses.read_senses(write(tmp_path, data, name))


def test_data_sets_are_named_by_the_documents_of_all_or_by_their_files(tmp_path):
    def named(*names: str) -> list[tuple[str, str]]:
        return [(each.data_set, each.document) for each in senses.read_data_sets([tmp_path / name for name in names])]

    joined = DATA.replace("d000", "senseval2.d000").replace("d001", "semeval2007.d001")
    write(tmp_path, joined, "ALL.data.xml")
    write(tmp_path, GOLD.replace("d000", "senseval2.d000").replace("d001", "semeval2007.d001"), "ALL.gold.key.txt")
    assert named("ALL.data.xml") == [("senseval2", "senseval2.d000"), ("semeval2007", "semeval2007.d001")]
    write(tmp_path, DATA, "senseval3.data.xml")
    write(tmp_path, GOLD, "senseval3.gold.key.txt")
    write(tmp_path, SEMCOR, "semcor.tsv")
    assert named("senseval3.data.xml") == [("", "d000"), ("", "d001")]
    both = [("senseval3", "d000"), ("senseval3", "d001"), ("semcor", "a/one"), ("semcor", "a/two")]
    assert named("senseval3.data.xml", "semcor.tsv") == both
    (tmp_path / "new").mkdir()
    write(tmp_path, SEMCOR, "new/semcor.tsv")
    assert {name for name, _ in named("semcor.tsv", "new/semcor.tsv")} == {
        str(tmp_path / "semcor.tsv"),
        str(tmp_path / "new" / "semcor.tsv"),
    }
