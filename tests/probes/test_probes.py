"""The probes as commands: numbers that can be worked out, files, and everything that is refused."""

import itertools
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from elmo_tf import cli
from elmo_tf.annotated.columns import Tagged
from elmo_tf.annotated.senses import SenseSentence, Use
from elmo_tf.errors import InputError
from elmo_tf.probes import learned_weights, pos, vectors, wsd
from tests.helpers import MICRO

pytestmark = pytest.mark.usefixtures("loaded_once")
# The tag follows from the word before, so a layer without context cannot tell it.
WORDS = ["one", "two", "six", "ten"]
SENTENCES = [[WORDS[int(n)] for n in np.random.default_rng(seed).integers(4, size=6)] for seed in range(60)]


def tagged(sentences) -> list[Tagged]:
    return [
        Tagged(sentence, ["X", *("A" if before in WORDS[:2] else "B" for before in sentence[:-1])])
        for sentence in sentences
    ]


def conllu(sentences: list[Tagged]) -> str:
    row = "{0}\t{1}\t_\t{2}\t{2}\t_\t_\t_\t_\t_\n".format
    return "\n".join("".join(map(row, itertools.count(1), sentence.tokens, sentence.labels)) for sentence in sentences)


@pytest.mark.slow
def test_layers_of_spans_are_those_of_the_signature_in_the_order_asked_for(savedmodel):
    sentences = [["a", "bank", "lends"], [], ["the", "river", "bank", "naïve"], ["x"]]
    spans = [[(2, 3), (0, 2)], [], [(1, 4)], []]
    embedded = vectors.embed(savedmodel.path, sentences, spans)
    model = tf.saved_model.load(str(savedmodel.path)).signatures["default"]
    first, third = (model(strings=tf.constant([" ".join(sentences[n])]))["layers"][0].numpy() for n in (0, 2))
    expected = np.stack([first[:, 2], first[:, :2].mean(1), third[:, 1:4].mean(1)])
    assert embedded.dtype == np.float16
    np.testing.assert_allclose(embedded, expected, rtol=2**-10, atol=2**-10)


def test_any_model_that_gives_layers_of_tokens_can_be_probed():
    class Lengths:
        """Layers of which the second knows the word before."""

        def embed(self, sentences):
            for number, tokens in enumerate(sentences):
                own = [[WORDS.index(token.decode()) == word for word in range(4)] for token in tokens]
                yield number, np.array([own, [[False] * 4, *own[:-1]]], np.float32)

    results = pos.probe(Lengths(), tagged(SENTENCES[:45]), tagged(SENTENCES[45:]))
    scores = {row.name: row.scores["accuracy"] for row in results.rows}
    assert scores["layer 0"] < 0.65
    assert scores["layer 1"] == 1

    # Words without a label are context only.
    parts = (
        [Tagged(sentence.tokens, ["", *sentence.labels[1:]]) for sentence in tagged(part)]
        for part in (SENTENCES[:45], SENTENCES[45:])
    )
    results = pos.probe(Lengths(), *parts, labels="Case")
    scores = {row.name: row.scores["accuracy"] for row in results.rows}
    assert scores["layer 0"] < 0.75
    assert scores["layer 1"] == 1
    assert results.details["tags"] == ["A", "B"]
    assert (results.details["train_tokens"], results.details["test_tokens"]) == (225, 75)
    assert results.table().startswith("POS (Case) ") and results.to_json()["labels"] == "Case"


@pytest.mark.slow
def test_pos_finds_tags_that_depend_on_context_in_the_upper_layers(savedmodel, tmp_path, capsys):
    (tmp_path / "train").write_text(conllu(tagged(SENTENCES[:45])))
    (tmp_path / "test").write_text(conllu(tagged(SENTENCES[45:])))
    command = ["probe", "pos", "--model", str(savedmodel.path), "--output", str(tmp_path / "out")]
    assert cli.main([*command, "--train", str(tmp_path / "train"), "--test", str(tmp_path / "test")]) == 0
    table = capsys.readouterr().out.splitlines()
    results = json.loads((tmp_path / "out" / "pos.json").read_text())
    scores = {name: row["accuracy"] for name, row in results["scores"].items()}
    assert list(scores) == ["most frequent tag", "layer 0", "layer 1", "layer 2", "mix"]
    assert scores["layer 0"] < 0.65
    assert scores["layer 1"] > 0.8
    assert scores["mix"] > scores["layer 0"]
    assert (results["train_tokens"], results["test_tokens"], results["tags"]) == (270, 90, ["A", "B", "X"])
    assert sum(results["mix_weights"]) == pytest.approx(1, abs=1e-3)
    assert table[2].split() == ["layer", "0", f"{100 * scores['layer 0']:.1f}%"]
    assert (tmp_path / "out" / "pos.txt").read_text().splitlines() == table
    assert (tmp_path / "out" / "pos.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("tags", "accuracy"), [(["X", "Z", "X"], 1), (["Y", "X", "Z"], 0)])
def test_the_most_frequent_tag_is_the_words_own_or_the_usual_one(tags, accuracy):
    train = [Tagged(["a", "a", "a", "b"], ["X", "X", "Y", "Z"])]
    assert pos._most_frequent(train, [Tagged(["a", "b", "new"], tags)]) == accuracy


def senses(text: str, document: str = "") -> SenseSentence:
    """Words between spaces; `word/3` is a use of sense 3."""
    tokens, uses = [], []
    for position, word in enumerate(text.split()):
        form, _, sense = word.partition("/")
        tokens.append(form)
        if sense:
            uses.append(Use(position, position + 1, f"{form}%1", f"{form}%1:0{sense}::"))
    return SenseSentence(document, tokens, uses)


TRAIN = [*["the bank/1 lends"] * 3, "river bank/2 here", "the/7 tree/3"]
TEST = ["the bank/1 lends", "river bank/2 here", "tree/3", "unseen/4"]


def test_wsd_takes_the_nearest_average_and_the_baseline_the_most_frequent_sense(savedmodel):
    results = wsd.probe(savedmodel.path, [senses(text) for text in TRAIN], [senses(text) for text in TEST])
    scores = {row.name: row.scores for row in results.rows}
    assert list(scores) == ["most frequent sense", "layer 0", "layer 1", "layer 2", "average", "average minus mean"]
    # Three answers for four uses, two of them right: precision 2/3, recall 1/2.
    assert scores["most frequent sense"] == {"F1": pytest.approx(4 / 7), "ambiguous F1": pytest.approx(1 / 2)}
    assert scores["layer 1"] == {"F1": pytest.approx(6 / 7), "ambiguous F1": pytest.approx(1)}
    assert results.details == {"train_uses": 6, "test_uses": 4, "unseen_rate": 0.25, "ambiguous_rate": 0.5}


def test_each_of_several_senses_is_right_and_first_senses_are_a_baseline(savedmodel):
    train, test = ([senses(text) for text in texts] for texts in (TRAIN, ["the bank/1 lends", "river bank/2 here"]))
    either = [
        sentence._replace(uses=[use._replace(others=("bank%1:01::",)) for use in sentence.uses]) for sentence in test
    ]
    first_senses = {"bank%1": "bank%1:02::"}
    for uses, most, first in ((test, 1 / 2, 1 / 2), (either, 1, 1 / 2)):
        results = wsd.probe(savedmodel.path, train, uses, first_senses)
        scores = {row.name: row.scores["F1"] for row in results.rows}
        assert (scores["most frequent sense"], scores["first sense"]) == pytest.approx((most, first))


def test_each_data_set_has_its_f1_as_the_field_reports(savedmodel):
    train = [senses(text) for text in TRAIN]
    names = ["senseval2", "senseval2", "semeval2007", "a set with a long name"]
    test = [senses(text)._replace(data_set=name) for text, name in zip(TEST, names, strict=True)]
    results = wsd.probe(savedmodel.path, train, test)
    # The most frequent sense: right and wrong, right, and no answer.
    assert results.rows[0].scores == {
        "F1": pytest.approx(4 / 7),
        "ambiguous F1": pytest.approx(1 / 2),
        "senseval2": pytest.approx(1 / 2),
        "semeval2007": 1,
        "a set with a long name": 0,
    }
    assert results.to_json()["data_sets"] == {"senseval2": 2, "semeval2007": 1, "a set with a long name": 1}
    header, first, *_ = results.table().splitlines()
    assert header.split() == ["WSD", "F1", "ambiguous", "F1", "senseval2", "semeval2007", *names[3].split()]
    assert first.split()[3:] == ["57.1%", "50.0%", "50.0%", "100.0%", "0.0%"]
    assert len(header) == len(first)


def test_nearest_is_by_the_cosine_with_the_averages_of_the_lemmas_own_senses():
    train = np.array([[4, 0], [0, 2], [9, 9], [-1, 5]], np.float32)
    answers = np.array(["a%1:1", "a%1:2", "b%1:1", "a%1:2"])
    own = {"a%1": ["a%1:1", "a%1:2"], "b%1": ["b%1:1"]}
    test = np.array([[1.0, 0.9], [0.1, 0.2], [-1, -1], [1, 1]], np.float32)
    chosen = wsd._nearest([train, test], answers, ["a%1", "a%1", "b%1", "c%1"], own)
    assert chosen.tolist() == ["a%1:1", "a%1:2", "b%1:1", ""]


def test_of_senses_as_near_the_most_frequent_is_taken():
    vectors = np.random.default_rng(0).normal(size=(40, 64)).astype(np.float16).astype(np.float32)
    # Without context, uses of one form have equal vectors except for rounding.
    for vector in vectors:
        train = np.repeat(vector[None], 12, 0)
        answers = np.array(["a%1:2"] * 7 + ["a%1:1"] * 5)
        chosen = wsd._nearest([train, vector[None]], answers, ["a%1"], {"a%1": ["a%1:2", "a%1:1"]})
        assert chosen.tolist() == ["a%1:2"]


def test_every_fifth_document_is_held_out():
    sentences = [senses("a/1", f"d{number // 2}") for number in range(22)]
    train, test = wsd.split(sentences)
    assert [sentence.document for sentence in test] == ["d4", "d4", "d9", "d9"]
    assert len(train) == 18
    with pytest.raises(InputError, match=r"^train: expected at least 5 documents, .* found 4$"):
        wsd.split(sentences[:8])


@pytest.mark.slow
def test_wsd_as_a_command(savedmodel, tmp_path, capsys):
    rows = []
    for number, text in enumerate([*TRAIN[:4], f"{TEST[0]} unseen/4"]):
        rows.append(f"# doc d{number}\n")
        for word in text.split():
            form, _, sense = word.partition("/")
            rows.append(f"{form}\tNN\t{form}\t{f'{form}%1:0{sense}::' if sense else '_'}\n")
        rows.append("\n")
    (tmp_path / "semcor.tsv").write_text("".join(rows))
    command = ["probe", "wsd", "--json", "--model", str(savedmodel.path), "--train", str(tmp_path / "semcor.tsv")]
    (tmp_path / "index.sense").write_text("unseen%1:04:: 01 1 9\nbank%1:09:: 01 1 9\n")
    command += ["--sense-index", str(tmp_path / "index.sense")]
    assert cli.main([*command, "--output", str(tmp_path / "held")]) == 0
    results = json.loads(capsys.readouterr().out)
    assert (results["train_uses"], results["test_uses"]) == (4, 2)
    # The dictionary has the sense of the lemma that is not in training, and changes no other answer.
    assert results["scores"]["most frequent sense"]["F1"] == 1
    (tmp_path / "copy.tsv").write_text("".join(rows))
    tests = [str(tmp_path / name) for name in ("semcor.tsv", "copy.tsv")]
    assert cli.main([*command, "--test", *tests, "--output", str(tmp_path / "two")]) == 0
    results = json.loads(capsys.readouterr().out)
    assert results["data_sets"] == {"semcor": 6, "copy": 6}
    assert results["scores"]["layer 1"].keys() == {"F1", "ambiguous F1", "semcor", "copy"}
    assert cli.main([*command, "--test", tests[0], "--output", str(tmp_path / "same")]) == 0
    results = json.loads(capsys.readouterr().out)
    assert (results["train_uses"], results["test_uses"]) == (6, 6)
    assert sorted(path.name for path in (tmp_path / "same").iterdir()) == ["wsd.json", "wsd.png", "wsd.txt"]

    logdir = tmp_path / "logs"
    show = ["projector", "--model", str(savedmodel.path), "--logdir", str(logdir)]
    assert cli.main([*show, "--data", str(tmp_path / "semcor.tsv"), "--word", "bank"]) == 0
    assert capsys.readouterr().out == f"tensorboard --logdir {logdir}\n"
    labels = (logdir / "uses.tsv").read_text().splitlines()
    assert labels[:2] == ["sense\tsentence", "bank%1:01::\tthe [bank] lends"]
    assert len(labels) == 6
    names = ["layer_0", "layer_1", "layer_2", "average"]
    points = [np.loadtxt(logdir / f"{name}.tsv", delimiter="\t") for name in names]
    assert {point.shape for point in points} == {(5, 16)}
    np.testing.assert_allclose(points[3], np.mean(points[:3], 0), rtol=1e-2, atol=1e-3)
    config = (logdir / "projector_config.pbtxt").read_text()
    assert all(f'tensor_path: "{name}.tsv"' in config for name in names)
    assert config.count('metadata_path: "uses.tsv"') == 4


def test_projector_takes_every_use_in_a_text_each_sentence_once(savedmodel, tmp_path, capsys):
    (tmp_path / "text").write_text("a bank and a bank\nno\na  bank and a bank\nbank\nBank\n")
    command = ["projector", "--model", str(savedmodel.path), "--input", str(tmp_path / "text")]
    assert cli.main([*command, "--logdir", str(tmp_path / "logs"), "--word", "bank"]) == 0
    labels = (tmp_path / "logs" / "uses.tsv").read_text().splitlines()
    assert labels == ["a [bank] and a bank", "a bank and a [bank]", "[bank]", "[Bank]"]
    assert cli.main([*command, "--logdir", str(tmp_path / "other"), "--word", "no"]) == 1
    assert "--word: too few uses of 'no': 1; the projector needs at least two" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def saved(path, *layers: elmo_tf.ELMo) -> None:
    """Saves a model in which each layer is a submodel, unless there is only one."""
    inputs = keras.Input((None,), dtype="string")
    outputs = [layer(inputs) for layer in layers]
    if len(layers) > 1:
        outputs = [keras.Model(inputs, output)(inputs) for output in outputs]
    path.parent.mkdir(exist_ok=True)
    keras.Model(inputs, outputs).save(path)


def test_weights_plot_reads_every_mix_of_saved_models(tmp_path, capsys):
    two, fixed = elmo_tf.ELMo(MICRO, 2), elmo_tf.ELMo(MICRO, mix=1)
    two.mixes[0].scalar_parameters.assign([1.0, 0.0, -1.0])
    two.mixes[1].gamma.assign(2.5)
    saved(tmp_path / "ner.keras", two)
    saved(tmp_path / "one.keras", fixed)
    picture = tmp_path / "weights.png"
    command = ["weights-plot", "--model", str(tmp_path / "ner.keras"), "--model", str(tmp_path / "one.keras")]
    assert cli.main([*command, "--output", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    rows = json.loads(capsys.readouterr().out.splitlines()[-1])
    np.testing.assert_allclose(rows[0].pop("weights"), [0.6652, 0.2447, 0.09], atol=1e-4)
    assert rows == [
        {"name": "ner input", "gamma": 1},
        {"name": "ner output", "weights": [0.3333] * 3, "gamma": 2.5},
        {"name": "one", "weights": [0, 1, 0], "gamma": 1},
    ]


def test_mixes_of_files_and_layers_of_one_name_get_different_names(tmp_path):
    towers = [elmo_tf.ELMo(MICRO, name="elmo") for _ in range(2)]
    for gamma, layer in zip((5.0, 6.0), towers, strict=True):
        layer.mixes[0].gamma.assign(gamma)
    saved(tmp_path / "two.keras", *towers)
    mixes = learned_weights.read(tmp_path / "two.keras")
    assert [mix.gamma for mix in mixes] == [5.0, 6.0]
    assert len({mix.name for mix in mixes}) == 2
    paths = [tmp_path / folder / "ner_0.keras" for folder in ("wnut", "wikigold")]
    for path in paths:
        saved(path, elmo_tf.ELMo(MICRO))
    assert [mix.name for mix in learned_weights.read_all(paths)] == ["wnut/ner_0", "wikigold/ner_0"]
    assert [mix.name for mix in learned_weights.read_all(paths[:1])] == ["ner_0"]


def test_files_without_mixes_are_refused(tmp_path):
    keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]).save(tmp_path / "other.keras")
    (tmp_path / "text.keras").write_text("no archive")
    for name, message in (
        ("other", "the model has no elmo_tf.ELMo layer"),
        ("text", r"not a model saved as .keras \("),
        ("missing", r"not a model saved as .keras \("),
    ):
        with pytest.raises(InputError, match=rf"^{tmp_path}/{name}\.keras: {message}"):
            learned_weights.read(tmp_path / f"{name}.keras")


@pytest.mark.parametrize(("name", "font"), [("ner \u24b6", "STIXGeneral"), ("\u043d\u0435\u0440", "DejaVu Sans")])
def test_names_are_drawn_in_a_font_that_has_their_letters(tmp_path, name, font, recwarn):
    learned_weights.plot([learned_weights.Mix(name, [0.5, 0.5], 1.0)], tmp_path / "plot.png")
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]
    assert learned_weights._fonts(name)[-1] == font


def test_a_letter_that_no_font_has_is_named_in_a_warning(tmp_path):
    with pytest.warns(UserWarning, match="Glyph 983040 .* missing"):
        learned_weights.plot([learned_weights.Mix("\U000f0000", [0.5, 0.5], 1.0)], tmp_path / "plot.png")


MIXES = [learned_weights.Mix("a", [0.5, 0.5], 1.0), learned_weights.Mix("b", [1.0], 1.0)]


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (pos.probe, ([Tagged(["a"], ["X"])], []), r"train: expected at least two different tags, found \['X'\]"),
        (
            pos.probe,
            ([Tagged(["a", "b"], ["X", "Y"])], [Tagged(["a", "b"], ["NN", "DT"])]),
            "test: expected tags of the training data, such as X, found DT, NN$",
        ),
        (wsd.probe, ([senses("a/1")], [senses("a")]), "test: it has no words with senses$"),
        (learned_weights.plot, (MIXES,), r"mixes: expected equal numbers of layers, found \[1, 2\]"),
    ],
)
def test_what_cannot_be_probed_or_drawn_is_refused(tmp_path, call, arguments, message):
    path = tmp_path / "neither a model nor a plot"
    given = (*arguments, path) if call is learned_weights.plot else (path, *arguments)
    with pytest.raises(InputError, match=f"^{message}"):
        call(*given)
    assert not path.exists()
