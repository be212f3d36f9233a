"""Word senses in Raganato's framework."""

import pytest

from elmo_tf.annotated import senses
from elmo_tf.errors import InputError
from tests.annotated.text_file import assert_refused, write

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
    with pytest.raises(InputError, match=r"other.xml: the framework's files are called NAME.data.xml and NAME.gold"):
        senses.read_senses(write(tmp_path, DATA, "other.xml"))
    path = write(tmp_path, DATA, "a.data.xml")
    with pytest.raises(InputError, match=r"a.gold.key.txt: no such file$"):
        senses.read_senses(path)
    write(tmp_path, GOLD.replace("d000.s000.t001", "x"), "a.gold.key.txt")
    with pytest.raises(InputError, match=r"the instance 'd000.s000.t001' has no sense in the gold keys$"):
        senses.read_senses(path)
    write(tmp_path, GOLD, "a.gold.key.txt")
    with pytest.raises(InputError, match=r"a.data.xml: it cannot be read as XML: "):
        senses.read_senses(write(tmp_path, DATA[:-20], "a.data.xml"))
