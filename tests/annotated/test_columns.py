"""Files with a token and a tag per line, and tokens and tags as lists in rows."""

import functools
import itertools
import json
import logging

import pytest

from elmo_tf.annotated import columns
from elmo_tf.annotated.columns import Tagged
from elmo_tf.annotated.reading_options import Reading, label_names
from elmo_tf.errors import InputError
from tests.annotated.text_file import assert_refused, write


def test_columns_with_tabs_or_spaces_become_iob2(tmp_path):
    path = write(tmp_path, "-DOCSTART- O\n\nIn O\nNew I-LOC\r\nYork I-LOC\nSmith I-PER\n\n\na\tB-PER\nb\tX\tI-PER\n")
    assert columns.read_columns(path) == [
        Tagged(["In", "New", "York", "Smith"], ["O", "B-LOC", "I-LOC", "B-PER"]),
        Tagged(["a", "b"], ["B-PER", "I-PER"]),
    ]


def test_a_column_of_conll_2003_is_chosen(tmp_path):
    path = write(tmp_path, "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n")
    assert columns.read_columns(path) == [Tagged(["EU", "rejects"], ["B-ORG", "O"])]
    for column in (2, -2):
        sentences = columns.read_columns(path, Reading(tag_column=column))
        assert sentences == [Tagged(["EU", "rejects"], ["B-NP", "B-VP"])]
    assert columns.read_columns(path, Reading(token_column=1))[0].tokens == ["NNP", "VBZ"]
    assert columns.read_columns(path, Reading(token_column=-4))[0].tokens == ["EU", "rejects"]
    for name in ("token", "tag"):
        expected = rf"no column 4 for --{name}-column: the lines have 4, counted from 0$"
        with pytest.raises(InputError, match=expected):
            columns.read_columns(path, Reading(**{f"{name}_column": 4}))
    wrong = Reading(tag_column=1)
    assert_refused(lambda path: columns.read_columns(path, wrong), path, ".*, found 'EU NNP I-NP I-ORG'", line=3)


def test_white_space_around_columns_is_dropped_and_in_a_token_stays(tmp_path):
    path = write(tmp_path, "1\u00a0000 B-X \nEUR\tI-X \n")
    assert columns.read_columns(path) == [Tagged(["1\u00a0000", "EUR"], ["B-X", "I-X"])]
    path = write(tmp_path, "An\tB-PER\nl\u00e0\tO\n sinh vi\u00ean \tO\n\nBo\tB-PER\n10 000\tO\n")
    expected = [["An", "l\u00e0", "sinh vi\u00ean"], ["Bo", "10 000"]]
    for labeled in (True, False):
        assert [sentence.tokens for sentence in columns.read_columns(path, labeled=labeled)] == expected
    (path := tmp_path / "rows").write_text('{"tokens": ["10 000", " a "], "tags": ["O", "O"]}')
    assert columns.read_columns(path) == [Tagged(["10 000", "a"], ["O", "O"])]
    path = write(tmp_path, "New B-LOC x\nYork I-LOC y\n")
    assert columns.read_columns(path) == [Tagged(["New", "York"], ["B-LOC", "I-LOC"])]


UNIVERSAL = """# sent_id = a-1
# text = Ana lives in the U.S.
1\tAna\tB-PER\t-\tx
2\tlives\tO\t-\t-
3-4\tinthe\t_\t-\t-
3\tin\tO\t-\t-
4\tthe\tO\t-\t-
5\tU.S.\tB-LOC\t-\tx

# text = B-12
1\tNo\tO\t-\t-
"""
GERMEVAL = "#\thttp://example.org/\t[2010-01-01]\n1\tAna\tB-PER\tO\n2\tlebt\tO\tB-LOC\n"
MULTICONER = "# id 5239d808\tdomain=en\nana _ _ B-PER\nsat _ _ O\n\n# id 1f3a\tdomain=en\n# _ _ O\n"
WIKIANN = "en:Ana\tB-PER\nen:sat\tO\n\nen::\tO\n"
HEADER = "id,x\tword\tner\tsource\n0\tAna\tB-PER\tO\n0\tsat\tO\tO\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (UNIVERSAL, [(["Ana", "lives", "in", "the", "U.S."], ["B-PER", "O", "O", "O", "B-LOC"]), (["No"], ["O"])]),
        (GERMEVAL, [(["Ana", "lebt"], ["B-PER", "O"])]),
        (MULTICONER, [(["ana", "sat"], ["B-PER", "O"]), (["#"], ["O"])]),
        (WIKIANN, [(["Ana", "sat"], ["B-PER", "O"]), ([":"], ["O"])]),
        (HEADER, [(["Ana", "sat"], ["B-PER", "O"])]),
        (HEADER.replace("ner", "tag"), [(["Ana", "sat"], ["B-PER", "O"])]),
        (HEADER.replace("word", "Token").replace("\tsource", "\tNER_TAGS"), [(["Ana", "sat"], ["O", "O"])]),
        ("pos word tag\nNNP Ana B-PER\nVBD sat O\n", [(["Ana", "sat"], ["B-PER", "O"])]),
        ("entity\tpos\tform\nB-PER\tNNP\tAna\nO\tVBD\tsat\n", [(["Ana", "sat"], ["B-PER", "O"])]),
        ("B-PER Ana\nO sat\n", [(["Ana", "sat"], ["B-PER", "O"])]),
        ("B-PER\tAna\nO\tsat\n", [(["Ana", "sat"], ["B-PER", "O"])]),
        ("0\tAna\tB-PER\n0\tsat\tO\n", [(["Ana", "sat"], ["B-PER", "O"])]),
        ("s1 Ana B-PER\ns1 sat O\n\ns2 Bo B-PER\n", [(["Ana", "sat"], ["B-PER", "O"]), (["Bo"], ["B-PER"])]),
        ("Ana B-PER x\nsat O y\n", [(["Ana", "sat"], ["B-PER", "O"])]),
        ("Ana B-PER\nsat VBD O\n", [(["Ana", "sat"], ["B-PER", "O"])]),
        ("John\tNNP\tB-PER\n", [(["John"], ["B-PER"])]),
        ("-DOCSTART- -X- O\n\nJohn NNP B-PER\n", [(["John"], ["B-PER"])]),
        ("1\tJohn\tNNP\tB-PER\tO\n", [(["John"], ["B-PER"])]),
    ],
    ids=[
        *("universal", "germeval", "multiconer", "wikiann", "chosen by name", "known names", "known in any case"),
        *("names between spaces", "names in another order", "tags first", "tags first, tabs", "number first"),
        *("sentence first", "tags in the middle", "ragged", "single, tabs", "single, document", "single, indexed"),
    ],
)
def test_columns_are_found_in_files_as_they_are_published(tmp_path, caplog, text, expected):
    caplog.set_level(logging.INFO, "elmo_tf")
    path = write(tmp_path, text)
    given = Reading(token_column="word", tag_column="ner") if text == HEADER else Reading()
    sentences = columns.read_columns(path, given)
    assert [(sentence.tokens, sentence.labels) for sentence in sentences] == expected
    (record,) = caplog.records
    assert "tokens in column " in record.getMessage()
    # `predict` and `text` read the same sentences.
    assert columns.has_columns(path, given)
    assert columns.read_columns(path, given, labeled=False) == [Tagged(tokens) for tokens, _ in expected]
    tags = [["B-X"] * len(tokens) for tokens, _ in expected]
    assert sum("B-X" in line for line in columns.with_tags(path, given, tags)) == sum(map(len, tags))


def test_columns_that_can_be_read_in_two_ways_are_refused_with_both(tmp_path):
    path = write(tmp_path, "Ana B-PER B-X x\nsat O O y\n")
    message = r"several columns could have the tags: line 1 has 'B-PER' \(--tag-column 1\) or 'B-X' \(--tag-column 2\)$"
    with pytest.raises(InputError, match=message):
        columns.read_columns(path)
    with pytest.raises(InputError, match=r"could have the tokens: .*'Ana' \(--token-column 1\) or 'x' \(--token-"):
        columns.read_columns(write(tmp_path, "B-PER Ana x\nO sat y\n"))
    with pytest.raises(InputError, match=r"no column is called 'tag'; the first line has Ana, B-PER$"):
        columns.read_columns(write(tmp_path, "Ana B-PER\n"), Reading(tag_column="tag"))


@pytest.mark.parametrize("labeled", [True, False])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0\tEU\tNNP\tB-ORG\n0\tmet\tVBD\tO\n", r".* tokens: line 1 has 'EU' \(--token-column 1\) or 'NNP'"),
        ("s EU NNP B-ORG\ns met VBD O\n", r".* tokens: line 1 has 'EU' \(--token-column 1\) or 'NNP'"),
        ("B-ORG EU NNP B-NP\nO met VBD O\n", r".* tokens: line 1 has 'EU' \(--token-column 1\) or 'NNP'"),
        ("Ana NNP B-PER\tB-PER\nsat VBD O\tO\n", "columns separated by tabs or by spaces, not both, or --token-column"),
    ],
)
def test_columns_in_an_order_that_is_not_documented_are_asked_for(tmp_path, text, message, labeled):
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=message):
        columns.read_columns(path, labeled=labeled)
    tokens = columns.read_columns(path, Reading(token_column=1 if "EU" in text else 0, tag_column=-1), labeled)[
        0
    ].tokens
    assert tokens in (["EU", "met"], ["Ana NNP B-PER", "sat VBD O"])


COLUMNS = {
    "sentence_id": ("s0", "s0", "s0", "s1"),
    "index": ("0", "1", "2", "3"),
    "word": ("Ana", "met", "Bo", "Rome"),
    "pos": ("NNP", "VBD", "NNP", "NNP"),
    "chunk": ("B-NP", "B-VP", "B-NP", "B-NP"),
    "ner": ("B-PER", "O", "O", "B-LOC"),
}


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("separator", ["\t", " "])
@pytest.mark.parametrize("number", range(2, 5))
def test_labels_or_not_any_order_of_columns_has_the_same_reading_or_the_same_error(tmp_path, number, separator, header):
    def result(labeled: bool) -> list | str:
        try:
            return [sentence.tokens for sentence in columns.read_columns(tmp_path / "file", labeled=labeled)]
        except InputError as error:
            return str(error)

    for names in itertools.permutations(COLUMNS, number):
        if not {"word", "ner"} <= set(names):
            continue
        rows = [separator.join(COLUMNS[name][row] for name in names) for row in range(4)]
        rows.insert(3, "")
        write(tmp_path, "\n".join([separator.join(names)] * header + rows))
        labeled, unlabeled = result(True), result(False)
        assert labeled == unlabeled
        is_documented = names[0] == "word" and names[-1] == "ner"
        assert labeled == [["Ana", "met", "Bo"], ["Rome"]] or not (header or is_documented), names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("EU\tNNP\nmet\tVBD\n", "it seems to be a table: --token-column says which column has the tokens"),
        ("id\ttoks\tgold\n0\tEU\t?\n", "it seems to be a table: --token-column"),
        ("Word,POS,Tag\nEU,NNP,B-ORG\n", "a table with commas or semicolons"),
    ],
)
def test_a_table_is_not_tagged_as_running_text(tmp_path, text, message):
    path = write(tmp_path, text)
    assert_refused(functools.partial(columns.read_columns, labeled=False), path, message)
    with pytest.raises(InputError):
        columns.read_columns(path)


def test_a_single_token_row_is_one_if_something_says_so(tmp_path):
    path = write(tmp_path, "John NNP O\n")
    assert columns.read_columns(path, labeled=False) == [Tagged(["John", "NNP", "O"])]
    for given in (Reading(prefers_columns=True), Reading(token_column=0), Reading(tag_column=-1)):
        assert columns.read_columns(path, given, labeled=False) == [Tagged(["John"])]
        assert list(columns.with_tags(path, given, [["B-PER"]])) == ["John NNP B-PER\n"]
    path = write(tmp_path, "John sleeps\n")
    assert columns.read_columns(path, Reading(prefers_columns=True), labeled=False) == [Tagged(["John", "sleeps"])]


WITHHELD = "1\t_\tB-PER\t-\n2\t_____\tO\t-\n"


def test_withheld_words_are_no_words(tmp_path, caplog):
    path = write(tmp_path, WITHHELD)
    rows = write(tmp_path, '{"tokens": ["_", "_"], "tags": ["O", "O"]}', "rows")
    for withheld in (path, rows):
        for labeled in (True, False):
            read = functools.partial(columns.read_columns, labeled=labeled)
            assert_refused(read, withheld, "it has no sentence, because its words are withheld: add them")
    path = write(tmp_path, f"{WITHHELD}\n1\tAna\tB-PER\t-\n2\t_\tO\t-\n\n1\t_\tO\t-\n")
    caplog.clear()
    assert columns.read_columns(path) == [Tagged(["Ana", "_"], ["B-PER", "O"]), Tagged(["_"], ["O"])]
    assert caplog.messages[-1].endswith("line 1 (words are withheld, _ stands for each: left out)")
    lines = list(columns.with_tags(path, Reading(), [["O", "O"], ["O"]]))
    assert lines[:5] == [*WITHHELD.splitlines(True), "\n", "1\tAna\tO\t-\n", "2\t_\tO\t-\n"]


def test_a_quotation_mark_is_one_in_a_table_of_pandas_and_in_plain_columns(tmp_path):
    path = write(tmp_path, 'word\tner\n""""\tO\n"5"" disk"\tO\n"\tO\n""\tO\n"""a""\tO\n')
    assert columns.read_columns(path)[0].tokens == ['"', '5" disk', '"', '""', '"""a""']
    path = write(tmp_path, '""""\tO\n"\tB-X\n')
    assert columns.read_columns(path)[0].tokens == ['""""', '"']


ODD = "Ana\tB-PER\t\n\tO\nsat\tO\n\n\ufeff\nRome\tB-LOC\n"


def test_odd_lines_are_left_out_and_said_once_or_refused(tmp_path, caplog):
    path = write(tmp_path, ODD)
    sentences = columns.read_columns(path)
    assert sentences == [Tagged(["Ana", "sat"], ["B-PER", "O"]), Tagged(["Rome"], ["B-LOC"])]
    message = next(text for text in caplog.messages if "odd lines" in text)
    assert message.startswith(f"warning: {path}: 3 odd lines: line 5 (a byte order mark: ignored), line 1 (a tab at ")
    with pytest.raises(InputError, match=r"line 5: a byte order mark; without --strict it is ignored$"):
        columns.read_columns(path, Reading(strict=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GERMEVAL, GERMEVAL.replace("B-PER\tO", "B-X\tO").replace("lebt\tO", "lebt\tB-Y")),
        (ODD, "Ana\tB-X\t\n\tO\nsat\tB-Y\n\n\ufeff\nRome\tB-Z\n"),
        ("EU NNP I-ORG\nmet VB O\n", "EU NNP B-X\nmet VB B-Y\n"),
        ("EU  NNP   I-ORG\r\n met VB  O \r\n\r\n", "EU  NNP   B-X\r\n met VB  B-Y \r\n\r\n"),
        ("\ufeffI-ORG EU\r\nO met\n\n \t\nO it", "\ufeffB-X EU\r\nB-Y met\n\n \t\nB-Z it"),
        ("EU\t NNP\t I-ORG \nmet\tVB\tO\t\n", "EU\t NNP\t B-X \nmet\tVB\tB-Y\t\n"),
        ("Ana\nsat\n\nRome\n", "Ana\tB-X\nsat\tB-Y\n\nRome\tB-Z\n"),
        ("Ana\t\r\nsat \n\nRome", "Ana\tB-X\r\nsat\tB-Y \n\nRome\tB-Z"),
        ("word\tpos\nAna\tNE\t\nsat\tVB\n", "word\tpos\nAna\tNE\tB-X\nsat\tVB\tB-Y\n"),
    ],
)
def test_tags_are_written_into_the_columns_and_nothing_else_changes(tmp_path, text, expected):
    path = tmp_path / "file"
    path.write_bytes(text.encode())
    reading = Reading(token_column=1, tag_column=0) if text.startswith("\ufeffI-") else Reading()
    tags = [["B-X", "B-Y"], ["B-Z"]][: len(columns.read_columns(path, reading, labeled=False))]
    assert "".join(columns.with_tags(path, reading, tags)) == expected


CHINESE = ["\u4ed6\u4f4f\u5728\u5317\u4eac\u3002", "\u4f60\u597d\u3002", "\u6211\u4eec\u53bb\u4e0a\u6d77\u3002"]


def test_sentences_without_spaces_are_split_and_tokens_without_spaces_are_not(tmp_path):
    path = write(tmp_path, "\n".join(CHINESE))
    assert [tagged.tokens for tagged in columns.read_columns(path, labeled=False)] == list(map(list, CHINESE))
    assert not columns.has_columns(path)
    (whole,) = columns.read_columns(path, Reading(token_column=0), labeled=False)
    assert whole.tokens == CHINESE
    for tokens in (["\u4ed6", "\u4f4f\u5728", "\u5317\u4eac", "\u3002"], ["do", "n't", "e-mail"], ["can't", "stop"]):
        assert columns.read_columns(write(tmp_path, "\n".join(tokens)), labeled=False) == [Tagged(tokens)]


def test_a_sentence_of_json_without_tokens_keeps_its_place_unless_tags_are_learned(tmp_path):
    path = write(
        tmp_path, '{"tokens": ["a"], "tags": ["O"]}\n{"tokens": [], "tags": []}\n{"tokens": ["b"], "tags": ["O"]}'
    )
    assert columns.read_columns(path, labeled=False) == [Tagged(["a"]), Tagged([]), Tagged(["b"])]
    assert columns.read_columns(path) == [Tagged(["a"], ["O"]), Tagged(["b"], ["O"])]


def test_bioul_is_recognized_and_becomes_iob2(tmp_path):
    path = write(tmp_path, "a U-X\nb B-X\nc I-X\nd L-X\ne O\n\nf S-Y\ng B-Y\nh E-Y\n")
    labels = [sentence.labels for sentence in columns.read_columns(path)]
    assert labels == [["B-X", "B-X", "I-X", "I-X", "O"], ["B-Y", "B-Y", "I-Y"]]
    path = write(tmp_path, "\u738b B-N\n\u5c0f M-N\n\u660e E-N\n\u8bf4 O\n\na W-N\n")
    assert [sentence.labels for sentence in columns.read_columns(path)] == [["B-N", "I-N", "I-N", "O"], ["B-N"]]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("a O\nb\n", "a token and a tag, O, B-.* or I-.*, found 'b'", 2),
        ("a PER\n", "a token and a tag, .*, found 'a PER'", 1),
        ("\u00a0\tO\n", "it has no sentence", None),
        ("a B-\n", "a token and a tag, .*, found 'a B-'", 1),
        ("-DOCSTART- O\n", "it has no sentence", None),
        ("a U-X\n\nb B-X\nc O\n", "tags in an order that BIOUL allows, found 'c O'", 4),
    ],
)
def test_a_line_without_a_tag_that_fits_is_refused(tmp_path, text, message, line):
    assert_refused(columns.read_columns, write(tmp_path, text), message, line)


BIG = [["New", "York"], ["is", "big"]]
CHUNKS = Reading(tag_column=2)


@pytest.mark.parametrize(
    ("text", "given", "tokens"),
    [
        ("New B-LOC\nYork I-LOC\n\nis O\nbig O\n", Reading(), BIG),
        ("-DOCSTART- -X- O O\n\nNew a b B-LOC\nYork a b I-LOC\n\nis a b O\nbig a b O\n", Reading(), BIG),
        ("New\nYork\n\nis\nbig\n", Reading(), BIG),
        ("-DOCSTART-\n\nNew\t\nYork\t\n\nis\nbig\n", Reading(), BIG),
        ("Rome B-LOC\n\nParis B-LOC\n", Reading(), [["Rome"], ["Paris"]]),  # all lines decide, not the first block
        # A chosen column concerns files that have it: `predict` may get plain text after a training with --tag-column.
        ("New\nYork\n\nis\nbig\n", CHUNKS, BIG),
        ("EU NNP I-NP I-ORG\nmet VBZ I-VP O\n", CHUNKS, [["EU", "met"]]),
        ("0\tNew\n0\tYork\n", Reading(token_column=1), [["New", "York"]]),
        ("New York is big\nRome is old too\n", CHUNKS, None),
    ],
)
def test_tokens_are_read_from_columns(tmp_path, text, given, tokens):
    path = write(tmp_path, text)
    assert columns.has_columns(path, given) == (tokens is not None)
    if tokens:
        assert columns.read_columns(path, given, labeled=False) == list(map(Tagged, tokens))


def test_columns_need_all_their_tags(tmp_path):
    path = write(tmp_path, "New B-LOC\nYork I-LOC\n\nis O\nbig")
    assert columns.has_columns(path)
    assert_refused(functools.partial(columns.read_columns, labeled=False), path, ".*, found 'big'", line=5)


@pytest.mark.parametrize(
    "text",
    [
        "New York\nis big\n",
        "New\tYork\t\n is\u00a0big\n",
        "We drove along I-95\n",
        "He takes vitamin B-12\nShe lives near I-95\n",
        "My blood type is O\n",
        "Mine is O\n\nWhose is B-positive\n\nNobody knows\n",
        "The word is a label\nno other tag is here\n",
        "# is a hash\n1 is a number\n",
        "1 Buy some milk\n2 Call Anna now\n3 Go home early\n",
        "O homem dorme\nO rato corre\n",
        "Eis O homem\nEis O rato\n",
    ],
)
def test_sentences_have_no_columns_even_if_they_end_as_tags_do(tmp_path, text):
    assert not columns.has_columns(write(tmp_path, text))


def test_the_header_of_a_single_column_is_no_token_and_has_its_name(tmp_path):
    path = write(tmp_path, "word\nAna\nsat\n")
    read = functools.partial(columns.read_columns, labeled=False)
    assert read(path, Reading(token_column="word")) == [Tagged(["Ana", "sat"])]
    assert read(path) == [Tagged(["word", "Ana", "sat"])]
    with pytest.raises(InputError, match=f"^{path}: no column is called 'form'; the first line has word$"):
        read(path, Reading(token_column="form"))


NAMES = ("O", "B-PER", "I-PER", "B-LOC")
TAG_ROWS = [
    {"id": "0", "tokens": ["Ana", "Li", "sat"], "ner_tags": [1, 2, 0]},
    {"id": "1", "tokens": ["Rome", "\u00a0"], "ner_tags": [3, 0]},
]
EXPECTED = [Tagged(["Ana", "Li", "sat"], ["B-PER", "I-PER", "O"]), Tagged(["Rome"], ["B-LOC"])]


def test_numbers_are_names_by_their_order(tmp_path, caplog):
    path = write(tmp_path, "\n".join(map(json.dumps, TAG_ROWS)))
    (tmp_path / "names").write_text("\n".join(NAMES))
    for labels in (label_names(",".join(NAMES)), label_names(str(tmp_path / "names"))):
        assert columns.read_columns(path, Reading(labels=labels)) == EXPECTED
    assert caplog.messages[0] == f"warning: {path}: 1 odd line: line 2 (an empty token: left out)"
    assert columns.read_columns(path, labeled=False) == [Tagged(sentence.tokens) for sentence in EXPECTED]


def test_names_may_stand_in_the_rows_in_any_scheme_and_under_another_key(tmp_path):
    row = {"words": ["Ana", "Li", "sat"], "entities": ["B-PER", "E-PER", "O"]}
    path = write(tmp_path, json.dumps(row))
    assert columns.read_columns(path, Reading(tag_column="entities")) == EXPECTED[:1]


def test_a_row_without_the_names_says_which_it_has(tmp_path):
    path = write(tmp_path, '{"form": ["a"], "gold": ["O"]}')
    message = "it has 'form', 'gold', but no tokens or words, and no ner_tags or tags or labels; --token-column"
    assert_refused(columns.read_columns, path, message, line=1)
    assert columns.read_columns(path, Reading(token_column="form", tag_column="gold")) == [Tagged(["a"], ["O"])]


def test_parquet_has_the_same_rows(tmp_path):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    pyarrow.write_table(pytest.importorskip("pyarrow").Table.from_pylist(TAG_ROWS), tmp_path / "rows.parquet")
    assert columns.read_columns(tmp_path / "rows.parquet", Reading(labels=NAMES)) == EXPECTED
    (tmp_path / "wrong.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="it cannot be read as Parquet: "):
        columns.read_columns(tmp_path / "wrong.parquet")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"tokens": "a b", "ner_tags": [0]}, "tokens, a list of strings, found"),
        ({"tokens": ["a\tb"], "ner_tags": [0]}, "tokens without tabs and line breaks, found"),
        ({"tokens": ["a"], "ner_tags": [0, 0]}, r"ner_tags, a list of 1 tags, found '\[0, 0\]'"),
        (
            {"tokens": ["a"], "ner_tags": [0]},
            "tags O, B-... or I-...; --labels names the tags that are numbers, found '0'",
        ),
        ({"tokens": ["a"], "ner_tags": ["PER"]}, "tags O, B-... or I-..., found 'PER'"),
    ],
)
def test_a_row_without_tokens_or_tags_is_named(tmp_path, row, message):
    path = write(tmp_path, json.dumps(TAG_ROWS[0] | {"ner_tags": ["O"] * 3}) + "\n" + json.dumps(row))
    assert_refused(columns.read_columns, path, message, line=2)
