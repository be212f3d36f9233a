"""What a language model finds likely: scores of sentences, words for a place, surprisal of words."""

import concurrent.futures
import csv
import itertools
import json
import math
import os
import unicodedata

import numpy as np
import pytest

import elmo_tf
from elmo_tf import cli, embedder, engines, reference, scoring, sources
from elmo_tf.errors import InputError
from elmo_tf.text.tokenizers import split_texts
from elmo_tf.workdir import checkpoints
from elmo_tf.workdir.folder import open_workdir
from tests import checks, float64

pytestmark = pytest.mark.usefixtures("loaded_once")

SENTENCES = ["the cat sat on the mat", "zebras bark", "", "a dog", " ".join(["the dog sat"] * 200)]


@pytest.fixture(scope="module")
def model(workdir):
    return elmo_tf.load(workdir)


def carried(workdir, passage: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The probabilities of all words at each token, forward and backward, in float64."""
    opened = open_workdir(workdir)
    weights, sizes = float64.weights_of(checkpoints.restore(opened)[0]), opened.config.model
    ahead = back = None
    sentences = []
    for sentence in passage:
        tokens = [b"<S>", *sentence.encode().split(), b"</S>"]
        x = float64.char_cnn(weights, sizes.char_cnn, [float64.encode(token) for token in tokens])
        forward, ahead = reference.read(weights, sizes, "forward", x[:-1], ahead)
        backward, back = reference.read(weights, sizes, "backward", x[:0:-1], back)
        softmax = weights["softmax/kernel"], weights["softmax/bias"]
        forward, backward = (np.exp(reference.log_softmax(layers[-1], *softmax)) for layers in (forward, backward))
        sentences.append((forward, backward[::-1]))
    return sentences


def log_probs(workdir, sentence: str) -> tuple[np.ndarray, np.ndarray]:
    """The log-probabilities of a sentence's own tokens: forward with `</S>`, backward with `<S>`."""
    ((forward, backward),) = carried(workdir, [sentence])
    ids = open_workdir(workdir).vocabulary.ids([b"<S>", *sentence.encode().split(), b"</S>"])
    positions = np.arange(len(forward))
    return np.log(forward[positions, ids[1:]]), np.log(backward[positions, ids[:-1]])


def test_scores_are_those_of_a_reference_in_float64(model, workdir):
    for sentence, score in zip(SENTENCES, model.score(SENTENCES), strict=True):
        forward, backward = log_probs(workdir, sentence)
        assert score.tokens == sentence.split()
        np.testing.assert_allclose(score.forward_log_probs, forward, **checks.TOLERANCE)
        np.testing.assert_allclose(score.backward_log_probs, backward, **checks.TOLERANCE)
        assert score.total == pytest.approx(forward.sum() + backward.sum(), rel=1e-5)
        assert score.mean == pytest.approx(np.mean([*forward, *backward]), rel=1e-5)
        assert score.unknown.tolist() == [token in ("zebras", "bark") for token in score.tokens]


@pytest.mark.parametrize("engine", ["numpy", "tensorflow"])
def test_equal_texts_of_a_call_have_the_same_bits(engine, monkeypatch):
    """Computed on their own, rows of a product are rounded by their place in a block, on some CPUs."""
    elmo = elmo_tf.load("english", engine=engine)
    texts = ["A dog sat .", *["The bank lends money ."] * 8, "It barked at the bank of the river .", "A dog sat ."]
    computed: list[list[bytes]] = []

    def count(owner, name, tokens_of=lambda tokens: tokens):
        compute = getattr(owner, name)

        def counted(*arguments):
            computed.extend(tokens_of(item) for batch in arguments if isinstance(batch, list) for item in batch)
            return compute(*arguments)

        monkeypatch.setattr(owner, name, counted)

    def assert_computed_once():
        assert [b" ".join(tokens).decode() for tokens in computed] == [texts[0], texts[1], texts[9]]
        computed.clear()

    count(elmo._engines.chosen(), "vectors")
    outputs = elmo.encode(texts)
    assert_computed_once()
    assert len({sentence.vectors.tobytes() for sentence in outputs[1:9]}) == 1
    assert len({id(sentence.vectors) for sentence in outputs}) == len(texts)  # to change one changes no other
    count(scoring, "score")
    scores = elmo.score(texts)
    assert_computed_once()
    assert [score.tokens for score in scores] == [text.split() for text in texts]
    assert len({score.total for score in scores[1:9]}) == 1 and scores[0].total == scores[10].total
    assert len({id(score.forward_log_probs) for score in scores}) == len(texts)
    count(scoring, "surprisal", lambda group: [token for sentence in group for token in sentence.tokens])
    passages = "\n\n".join(texts).split("\n")
    for lines, context in ((texts, "sentence"), (passages, "passage")):
        words = elmo.surprisal(lines, context)
        assert_computed_once()
        rows = [[word[2:] for word in row] for row in by_sentence(words)]
        assert rows[1:9] == [rows[1]] * 8 and rows[0] == rows[10]


@pytest.mark.parametrize("context", ["sentence", "passage"])
def test_equal_passages_have_the_same_surprisal_and_their_own_numbers(model, context):
    lines = ["the cat sat", "a dog", "", "zebras bark", "", "the cat sat", "a dog"]
    words = model.surprisal(lines, context)
    first, second = ([word for word in words if word.passage == passage] for passage in (1, 3))
    assert [word[1:] for word in first] == [word[1:] for word in second]
    assert [(word.passage, word.sentence) for word in words] == [
        *[(1, 1)] * 3, *[(1, 2)] * 2, *[(2, 1)] * 2, *[(3, 1)] * 3, *[(3, 2)] * 2
    ]  # fmt: skip
    assert [word.word for word in words] == " ".join(lines).split()


def test_nothing_and_unknown_words_alone_have_scores(model):
    assert model.score([]) == []
    unknown, *empty = model.score(["zebras", "", " \t", []])
    assert (unknown.unknown.tolist(), unknown.tokens) == ([True], ["zebras"])
    assert math.isfinite(unknown.mean) and unknown.mean < 0
    assert [score.tokens for score in empty] == [[], [], []]
    for score in empty:
        assert list(map(len, (score.forward_log_probs, score.backward_log_probs, score.unknown))) == [1, 1, 0]
        assert score.total == pytest.approx(empty[0].total, rel=1e-6)


def test_threads_that_score_at_once_from_the_start_get_the_same_and_read_the_softmax_once(model, workdir, monkeypatch):
    made, read = [], sources.Workdir.softmax
    monkeypatch.setattr(sources.Workdir, "softmax", lambda source: made.append(0) or read(source))
    expected = [score.total for score in model.score(SENTENCES)]
    for engine in ("numpy", "tensorflow"):
        made.clear()
        fresh = embedder.Embedder(model.source)
        fresh._engines._made = {fresh.engine: engines.make.__wrapped__(model.source, engine)}
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            for scores in threads.map(fresh.score, [SENTENCES] * 8):
                assert [score.total for score in scores] == pytest.approx(expected, rel=1e-5)
        assert len(made) == 1


def test_words_are_ranked_by_both_directions_over_their_own_probability(model, workdir):
    vocabulary = open_workdir(workdir).vocabulary
    words = [token.decode() for token in vocabulary.tokens[3:]]
    sums = []
    for rank, word in enumerate(words, 3):
        (score,) = model.score([f"the {word} sat"])
        zipf = math.log(math.log((rank + 2) / (rank + 1)))
        sums.append(float(score.forward_log_probs[1] + score.backward_log_probs[2]) - zipf)
    filled = model.fill("the [MASK] sat", top=len(words))
    assert [candidate.token for candidate in filled[:3]] == [words[index] for index in np.argsort(sums)[::-1][:3]]
    assert sum(candidate.score for candidate in filled) == pytest.approx(1)
    assert filled[0].sequence == f"the {filled[0].token} sat"
    assert filled[0].score / filled[1].score == pytest.approx(math.exp(np.diff(np.sort(sums)[-2:])[0]), rel=1e-4)
    assert model.fill("the cat sat", word="cat", top=2) == model.fill(["the", "[MASK]", "sat"], top=2) == filled[:2]


TIMES = r"text: the token .* occurs \d times in the sentence; it must occur once"
NUMBER = "^top: expected a whole number, at least 1, found "


@pytest.mark.parametrize(
    ("text", "top", "word", "message"),
    [
        ("no place", 1, None, TIMES),
        ("[MASK] [MASK]", 1, None, TIMES),
        ("the cat the", 1, "the", r"the token the must occur once among \['the', 'cat', 'the'\]; it occurs 2 times"),
        # A list is one sentence's tokens, not several sentences.
        (["a [MASK]"], 1, None, r"the token \[MASK\] must occur once among \['a \[MASK\]'\]; it occurs 0 times"),
        *((text, 1, "a", r"^word: the sentence has \[MASK\]; give either ") for text in ("a [MASK]", b"a [MASK]")),
        (["a", b"[MASK]"], 1, "a", r"^word: the sentence has \[MASK\]; give either "),
        *(("a [MASK]", top, None, NUMBER) for top in (0, 2.5, "3")),
    ],
)
def test_a_sentence_without_exactly_one_mask_and_a_number_below_1_are_refused(model, text, top, word, message):
    with pytest.raises(InputError, match=message):
        model.fill(text, top, word=word)


def test_the_model_that_comes_with_the_package_prefers_grammar_and_knows_who_lends_money():
    english = elmo_tf.load("english")
    good, bad = english.score([f"The keys to the cabinet {verb} on the table ." for verb in ("are", "is")])
    assert good.total > bad.total + 2
    words = [word.token for word in english.fill("He [MASK] to London yesterday .", top=5)]
    assert "went" in words[:2]


@pytest.mark.parametrize("method", ["score", "surprisal"])
def test_a_source_without_a_softmax_is_refused(savedmodel, method):
    with pytest.raises(InputError, match="this model has no softmax; use a workdir"):
        getattr(elmo_tf.load(savedmodel.path), method)(["a dog"])


def test_the_commands_print_what_the_functions_return(model, workdir, tmp_path, capsys, caplog):
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{sentence}\n" for sentence in SENTENCES))
    assert cli.main(["score", "--model", os.fspath(workdir), "--input", str(text), "--tokens"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"warning: {text}: 2 of 610 tokens are not in the model's vocabulary; they are scored as <UNK>, too well: "
        "compare only sentences with the same num_unknown"
    ]
    for line, score in zip(lines, model.score(SENTENCES), strict=True):
        assert (line["sentence"].split(), line["tokens"]) == (score.tokens, score.tokens)
        assert line["unknown"] == score.unknown.tolist()
        assert (line["num_tokens"], line["num_unknown"]) == (len(score.tokens), score.unknown.sum())
        assert line["total"] == pytest.approx(score.total, abs=1e-3)
        assert line["forward_log_probs"] == pytest.approx(score.forward_log_probs, abs=1e-3)
    assert cli.main(["score", "--model", os.fspath(workdir), "--input", str(text)]) == 0
    sums = json.loads(capsys.readouterr().out.splitlines()[0])
    assert sums == {name: lines[0][name] for name in sums}
    assert sums.keys() == {"sentence", "num_tokens", "num_unknown", "forward", "backward", "total", "mean"}
    assert cli.main(["fill", "a [MASK] sat", "--model", os.fspath(workdir), "--top", "2"]) == 0
    words = [json.loads(line)["token"] for line in capsys.readouterr().out.splitlines()]
    assert words == [word.token for word in model.fill("a [MASK] sat", top=2)]


PASSAGES = [["the cat sat", "zebras bark at the dog", "a dog"], ["cats sleep on the mat"]]
LINES = [*PASSAGES[0], "", " ", *PASSAGES[1], ""]
BIT = math.log(2)
RELATIVE = 2 * checks.TOLERANCE["atol"]  # of two probabilities, by as much as their logarithms may differ


def by_sentence(words) -> list[list]:
    return [list(group) for _, group in itertools.groupby(words, lambda word: word[:2])]


def test_words_have_the_bits_that_score_gives_their_tokens(model):
    sentences = [*PASSAGES[0], *PASSAGES[1]]
    rows = by_sentence(model.surprisal(LINES))
    assert [[word.word for word in row] for row in rows] == [sentence.split() for sentence in sentences]
    assert [row[0][:2] for row in rows] == [(1, 1), (1, 2), (1, 3), (2, 1)]
    for row, score in zip(rows, model.score(sentences), strict=True):
        assert [word.known for word in row] == (~score.unknown).tolist()
        # The sentence boundaries are not words.
        assert sum(word.forward for word in row) == pytest.approx(-score.forward_log_probs[:-1].sum() / BIT, abs=1e-4)
        assert sum(word.backward for word in row) == pytest.approx(-score.backward_log_probs[1:].sum() / BIT, abs=1e-4)
        assert [word.both for word in row] == pytest.approx([word.forward + word.backward for word in row])


@pytest.mark.parametrize("context", ["sentence", "passage"])
def test_bits_and_ranks_are_those_of_a_full_softmax_after_the_states_of_the_sentence_before(model, workdir, context):
    vocabulary = open_workdir(workdir).vocabulary
    starts = PASSAGES if context == "passage" else [[sentence] for passage in PASSAGES for sentence in passage]
    expected = [sentence for passage in starts for sentence in carried(workdir, passage)]
    for row, (forward, backward) in zip(by_sentence(model.surprisal(LINES, context)), expected, strict=True):
        for word, before, after in zip(row, forward[:-1], backward[1:], strict=True):
            (number,) = vocabulary.ids([word.word.encode()])
            assert word.forward == pytest.approx(-math.log2(before[number]), **tolerance())
            assert word.backward == pytest.approx(-math.log2(after[number]), **tolerance())
            surely, perhaps = (sum(before > before[number] * (1 + sign * RELATIVE)) for sign in (1, -1))
            assert surely < word.rank <= perhaps


def tolerance() -> dict[str, float]:
    return {"rel": checks.TOLERANCE["rtol"], "abs": checks.TOLERANCE["atol"] / BIT}


def test_states_are_carried_in_both_directions_and_not_into_the_next_passage(model):
    apart, carried = (by_sentence(model.surprisal(LINES, context)) for context in ("sentence", "passage"))
    for direction in ("forward", "backward"):
        values = [[[getattr(word, direction) for word in row] for row in rows] for rows in (apart, carried)]
        changed = [alone != pytest.approx(in_passage, abs=1e-4) for alone, in_passage in zip(*values, strict=True)]
        assert changed == [False, True, True, False]


def test_punctuation_adds_its_bits_to_the_word_that_it_is_glued_to():
    english = elmo_tf.load("english")
    text = "“Hello,” she said; don't Zyqwxes go."
    rows = english.surprisal([text])
    assert [word.word for word in rows] == text.split()
    (score,) = english.score([text])
    assert score.tokens == ['"', "Hello", ",", '"', "she", "said", ";", "do", "n't", "Zyqwxes", "go", "."]
    parts = [slice(0, 4), slice(4, 5), slice(5, 7), slice(7, 9), slice(9, 10), slice(10, 12)]
    for word, part in zip(rows, parts, strict=True):
        assert word.forward == pytest.approx(-score.forward_log_probs[:-1][part].sum() / BIT, abs=1e-4)
        assert word.backward == pytest.approx(-score.backward_log_probs[1:][part].sum() / BIT, abs=1e-4)
    assert [word.known for word in rows] == [True, True, True, True, False, True]
    # The rank of Hello, not of the quotation mark.
    apart = english.surprisal(['" Hello , " she said ; do n\'t Zyqwxes go .'])
    assert [word.rank for word in rows] == [apart[index].rank for index in (1, 4, 5, 7, 9, 10)]
    assert english.surprisal(["Apples, pears"]) == english.surprisal([["Apples,", "pears"]])


@pytest.mark.parametrize("tokenizer", ["whitespace", "penn", "characters", "unicode"])
@pytest.mark.parametrize(
    "text",
    ["«Он, сказал», — ok!", "שלום, עולם", "「猫が座る。」 猫", "यह घर है।", unicodedata.normalize("NFD", "Äöü, naïve!")],
)
def test_words_of_any_alphabet_come_back_as_written_and_share_all_bits(workdir, tokenizer, text):
    model = elmo_tf.load(workdir, tokenizer, engine="numpy")
    rows, (score,) = model.surprisal([f"{text}\n"]), model.score([text])
    assert [word.word for word in rows] == text.split()
    assert sum(word.forward for word in rows) == pytest.approx(-score.forward_log_probs[:-1].sum() / BIT, abs=1e-4)
    assert sum(word.backward for word in rows) == pytest.approx(-score.backward_log_probs[1:].sum() / BIT, abs=1e-4)


@pytest.mark.parametrize("tokenizer", ["whitespace", "penn", "characters", "unicode"])
@pytest.mark.parametrize("text", [b"caf\xe9 is", b"\xe2\x80 U.S. \xff. a\xffb", "\ufeffthe \ufeffcat sat".encode()])
def test_bytes_that_are_not_utf8_and_byte_order_marks_have_the_tokens_that_score_gives_them(workdir, tokenizer, text):
    model = elmo_tf.load(workdir, tokenizer, engine="numpy")
    (sentence,), (score,) = scoring.numbered(split_texts([text], "whitespace"), tokenizer), model.score([text])
    assert [token.decode(errors="replace") for token in sentence.tokens] == score.tokens
    rows = model.surprisal([text])
    assert [row.word for row in rows] == text.removeprefix("\ufeff".encode()).decode(errors="replace").split()
    assert sum(row.forward for row in rows) == pytest.approx(-score.forward_log_probs[:-1].sum() / BIT, abs=1e-4)


def test_a_word_without_tokens_has_no_bits_and_no_rank():
    (first, second) = elmo_tf.load("english").surprisal(["\x01 Yes"])
    assert (first.passage, first.sentence, first.word, first.known) == (1, 1, "\x01", False)
    assert all(map(math.isnan, first[3:7]))
    assert np.nanmean([first.forward, second.forward]) == second.forward > 0


def test_the_table_has_empty_cells_for_a_word_without_tokens(tmp_path):
    (tmp_path / "text").write_text("\x01 Yes\n")
    assert cli.main(["surprisal", "--input", str(tmp_path / "text"), "--output", str(tmp_path / "words.tsv")]) == 0
    _, first, second = (tmp_path / "words.tsv").read_text().splitlines()
    assert first == "1\t1\t\x01\t\t\t\t\tfalse"
    assert all(second.split("\t"))


def test_what_has_no_surprisal_is_refused(model):
    with pytest.raises(InputError, match="a list of texts"):
        model.surprisal("the cat")
    with pytest.raises(InputError, match="context: expected one of sentence, passage, found 'text'"):
        model.surprisal(["the cat"], "text")
    assert model.surprisal([]) == model.surprisal(["", "\n"]) == []


def test_the_command_surprisal_writes_what_the_method_returns(model, workdir, tmp_path, capsys):
    text, output = tmp_path / "passages.txt", tmp_path / "words.tsv"
    lines = ['the "cat" sat', "", "a dog's bark\tbarked"]
    text.write_text("\ufeff" + "\r\n".join(lines), "utf-8")
    command = ["surprisal", "--model", os.fspath(workdir), "--input", str(text), "--output", str(output)]
    assert cli.main([*command, "--context", "passage"]) == 0
    assert capsys.readouterr().out == f"{output}: 7 words, 3 not in the vocabulary\n"
    with open(output, encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file, dialect="excel-tab"))
    expected = model.surprisal(lines, "passage")
    assert [row["word"] for row in table] == ["the", '"cat"', "sat", "a", "dog's", "bark", "barked"]
    for row, word in zip(table, expected, strict=True):
        assert list(row) == list(word._fields)
        assert (row["passage"], row["sentence"], row["rank"]) == tuple(
            map(str, (word.passage, word.sentence, word.rank))
        )
        assert row["known"] == str(word.known).lower()
        for name in ("forward", "backward", "both"):
            assert float(row[name]) == pytest.approx(getattr(word, name), abs=1e-3)


def test_chinese_words_between_spaces_have_the_bits_of_a_sentence_without_spaces(tmp_path, caplog):
    words, whole = (elmo_tf.load("english").surprisal([text]) for text in ("他们 在 学校 。", "他们在学校。"))
    assert [word.word for word in words] == ["他们", "在", "学校", "。"]
    assert sum(word.both for word in words) == pytest.approx(whole[0].both, abs=1e-4)
    unspaced = "warning: {}: 2 of 2 sentences have no white space and count as one word; "
    for text, is_warned in (
        ("他们在学校。\n我不知道。\n", True),
        ("他们 在 学校 。\n我 不 知道 。\n", False),
        ("Hi!\n", False),
    ):
        caplog.clear()
        (tmp_path / "text").write_text(text, "utf-8")
        (tmp_path / "table").unlink(missing_ok=True)
        assert cli.main(["surprisal", "--input", f"{tmp_path}/text", "--output", f"{tmp_path}/table"]) == 0
        assert (unspaced.format(tmp_path / "text") in caplog.text) == is_warned


def test_the_command_surprisal_refuses_what_it_cannot_read_or_write_and_leaves_no_file(
    workdir, savedmodel, tmp_path, capsys
):
    text, empty, latin, used = (tmp_path / name for name in ("text", "empty", "latin", "used"))
    text.write_text("the cat\n")
    empty.write_text("\n\n")
    latin.write_bytes(b"the caf\xe9\n")
    used.write_text("mine")
    for link, target in (("to_file", used), ("to_nothing", tmp_path / "nothing")):
        (tmp_path / link).symlink_to(target)
    kept = sorted(tmp_path.iterdir())
    for model, given, output, problem in [
        (workdir, text, "used", "used: already exists; name a new file"),
        (workdir, text, "to_file", "to_file: already exists; name a new file"),
        (workdir, text, "to_nothing", "to_nothing: a link to a path that does not exist; it is not followed"),
        (workdir, text, "none/new", f"none/new: there is no folder {tmp_path}/none"),
        (workdir, empty, "new", "empty: no words"),
        (workdir, latin, "new", "latin, line 1: not UTF-8 (invalid continuation byte)"),
        (workdir, tmp_path / "absent", "new", "absent: no such file"),
        (savedmodel.path, text, "new", "this model has no softmax; use a workdir, or an export made with --softmax"),
    ]:
        command = ["--model", os.fspath(model), "--input", str(given), "--output", str(tmp_path / output)]
        assert cli.main(["surprisal", *command]) == 1
        assert problem in capsys.readouterr().err.splitlines()[-1]
        assert sorted(tmp_path.iterdir()) == kept
    assert used.read_text() == "mine"
