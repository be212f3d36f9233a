"""What the layer takes as tokens or as sentences, and what Keras refuses on the way, with what helps."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
from elmo_tf.errors import InputError
from elmo_tf.tasks.layers.token_layers import Spelling, WordEmbedding
from tests import checks
from tests.helpers import batch_char_ids, slow
from tests.keras_layer.sentences import LENGTHS, ONE_LAYER, SENTENCES, TOKENS

TEXT = [["a", "naïve", "bank"], ["river"]]
PADDED = [["a", "naïve", "bank"], ["river", "", ""]]
DENSE = tf.constant(PADDED)
FORMS = {
    "ragged": tf.ragged.constant(TEXT),
    "ragged ids": tf.RaggedTensor.from_tensor(batch_char_ids([[w.encode() for w in s] for s in TEXT]), [3, 1]),
    "lists": TEXT,
    "bytes": [[word.encode() for word in sentence] for sentence in TEXT],
    "tuples": tuple(map(tuple, TEXT)),
    "padded lists": PADDED,
    "str array": np.array(PADDED),
    "string array": np.array(PADDED, np.dtypes.StringDType()),
    "object array": np.array(PADDED, object),
    "array of lists": np.array([*TEXT, None], object)[:2],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_same_tokens_has_the_same_ids(plain, form):
    np.testing.assert_array_equal(plain.char_ids(FORMS[form]), plain.char_ids(DENSE))


def test_an_empty_token_in_a_ragged_row_is_a_token_and_a_batch_may_have_none(plain):
    vectors = plain(tf.ragged.constant([["a", ""], ["b"]]))
    np.testing.assert_array_equal(vectors._keras_mask, [[True, True], [True, False]])
    assert np.any(vectors[0, 1] != 0)
    for empty in ([[], []], tf.ragged.constant([[], []], dtype=tf.string, ragged_rank=1)):
        assert plain(empty).shape == (2, 0, 16)


@pytest.mark.parametrize(
    ("token", "message"),
    [(None, "tokens that are str or bytes, found None"), ("\ud800", "tokens without half a surrogate pair, found ")],
)
def test_what_is_no_token_is_refused_in_the_same_words_everywhere(plain, savedmodel, token, message):
    elmo = elmo_tf.load(savedmodel.path)
    calls = {
        "inputs": lambda: plain([["a", token]]),
        "sentences": lambda: plain.remember([["a", token]]),
        "texts": lambda: elmo.encode([["a", token]]),
    }
    for parameter, call in calls.items():
        with pytest.raises(InputError, match=f"^{parameter}: expected {message}"):
            call()


@pytest.mark.parametrize(
    ("inputs", "description"),
    [
        ("the bank", r"string \(\); put a single sentence into a list"),
        (np.zeros((2, 3), np.int32), "int32"),
        (np.zeros((2, 3, 49), np.int32), "int32"),
        (np.zeros((2, 3, 50)), "float"),
        ([[["the"], ["bank"]]], r"string \(1, 2, 1\)"),
    ],
)
def test_inputs_of_another_shape_or_type_are_answered_with_what_helps(plain, inputs, description):
    expected = (
        r"inputs: expected sentences, strings \(batch,\), tokens, strings \(batch, time\), "
        r"or integers \(batch, time, 50\), found "
    )
    with pytest.raises(InputError, match=expected + description):
        plain(inputs)
    array = np.array(inputs)
    if array.ndim:
        symbolic = keras.Input(array.shape[1:], dtype="string" if array.dtype.kind == "U" else str(array.dtype))
        with pytest.raises(InputError, match=expected):
            plain(symbolic)


@pytest.mark.parametrize("inside", ["elmo", "spelling", "words"])
def test_it_works_in_keras_time_distributed(plain, inside):
    """The inputs are documents of several sentences."""
    layer = {"elmo": plain, "spelling": Spelling(4), "words": WordEmbedding(["a", "bank"], 3)}[inside]
    inputs = keras.Input((2, 3), dtype="string")
    model = keras.Model(inputs, keras.layers.TimeDistributed(layer)(inputs))
    documents = tf.stack([DENSE, DENSE[::-1]])
    outputs = model(documents)
    assert outputs.shape[1:] == model.output_shape[1:]
    for document, vectors in zip(documents, outputs, strict=True):
        np.testing.assert_allclose(vectors, layer(document), **checks.TOLERANCE)


# The mask of a layer with boundaries is that of test_layer.py.
@pytest.mark.parametrize("boundaries", [False, slow(True)])
def test_a_model_whose_layers_use_the_mask_predicts_and_fits_ragged_batches(savedmodel, with_options, boundaries):
    layer = elmo_tf.ELMo(savedmodel.path, boundaries=True) if boundaries else with_options()
    model = keras.Sequential([keras.Input((None,), dtype="string"), layer, elmo_tf.SequencePooling(["mean"])])
    ragged = tf.RaggedTensor.from_tensor(tf.constant(TOKENS), LENGTHS)
    np.testing.assert_allclose(model.predict(ragged, verbose=0), model(TOKENS[:, : max(LENGTHS)]), **checks.TOLERANCE)
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)  # otherwise Keras traces the first step twice
    targets = np.zeros((len(SENTENCES), model.output_shape[-1]))
    model.fit(tf.data.Dataset.from_tensor_slices((ragged, targets)).ragged_batch(2), verbose=0)


def test_a_sequential_model_needs_an_input_and_the_error_says_so(plain):
    message = (
        r"Sequential model has to begin with its input: for sentences keras.Input\(\(\), dtype='string'\), "
        r"for tokens keras.Input\(\(None,\), dtype='string'\)"
    )
    for inputs in (DENSE, tf.constant(["a bank", "river"])):
        with pytest.raises(InputError, match=message):
            keras.Sequential([plain, keras.layers.Dense(2)])(inputs)
    model = keras.Sequential([keras.Input((None,), dtype="string"), plain, keras.layers.Dense(2)])
    assert model(DENSE).shape == (2, 3, 2)


@keras.saving.register_keras_serializable("tests")
class Subclassed(keras.Model):
    """A user's own model, with a layer that is built when it is first called."""

    def __init__(self, elmo, **kwargs):
        super().__init__(**kwargs)
        self.elmo = elmo
        self.dense = keras.layers.Dense(3)

    def call(self, inputs):
        vectors = self.elmo(inputs)
        return self.dense(vectors[0] if isinstance(vectors, list) else vectors)

    def get_config(self):
        return {"elmo": keras.saving.serialize_keras_object(self.elmo)}

    @classmethod
    def from_config(cls, config):
        return cls(keras.saving.deserialize_keras_object(config["elmo"]))


@pytest.mark.parametrize(
    ("options", "ids"),
    [slow({}, False), ({"num_mixes": 2, "boundaries": True}, True), slow({"trainable_bilm": True}, False)],
)
def test_a_subclassed_model_is_the_same_after_saving_and_loading(tmp_path, options, ids):
    model = Subclassed(elmo_tf.ELMo(ONE_LAYER, **options))
    inputs = batch_char_ids(SENTENCES, 6) if ids else tf.constant(TOKENS)
    expected = model(inputs)
    model.save(tmp_path / "model.keras")
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "model.keras")(inputs), expected)


def test_a_graph_refuses_a_tensor_of_unknown_rank_and_numbers_for_tokens(plain):
    call = tf.function(plain, input_signature=[tf.TensorSpec(None, tf.string)], autograph=False)
    with pytest.raises(InputError, match="found string of unknown rank; call `set_shape` first"):
        call.get_concrete_function()
    function = tf.function(plain, input_signature=[tf.TensorSpec((None, None), tf.float32)])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"inputs: expected sentences, .* found float32"):
        function(tf.zeros((2, 3)))


RAW = ["The bank  lends\tmoney .", "", "naïve $3.50", "river"]
SPLIT = {
    "whitespace": [["The", "bank", "lends", "money", "."], [], ["naïve", "$3.50"], ["river"]],
    "unicode": [["The", "bank", "lends", "money", "."], [], ["naïve", "$", "3.50"], ["river"]],
    "characters": [[*"Thebanklendsmoney."], [], [*"naïve$3.50"], [*"river"]],
}


@pytest.mark.parametrize("tokenizer", [slow("whitespace"), "unicode", slow("characters")])
def test_sentences_give_the_vectors_and_the_mask_of_their_tokens(savedmodel, plain, with_options, tokenizer):
    split = elmo_tf.ELMo(savedmodel.path, tokenizer=tokenizer)
    expected = plain(SPLIT[tokenizer])
    vectors, ids = split(RAW), split.char_ids(RAW)
    np.testing.assert_allclose(vectors, expected, **checks.TOLERANCE)
    np.testing.assert_array_equal(vectors._keras_mask, expected._keras_mask)
    for form in (RAW, tf.constant(RAW), tuple(RAW), np.array(RAW), np.array(RAW, object)):
        np.testing.assert_array_equal(split.char_ids(form), plain.char_ids(SPLIT[tokenizer]))
    np.testing.assert_allclose(with_options(tokenizer=tokenizer)(ids), expected, **checks.TOLERANCE)
    for empty in (["", " "], []):
        assert split(empty).shape == (len(empty), 0, 16)
        assert split(empty)._keras_mask.shape == (len(empty), 0)
    mask = elmo_tf.ELMo(savedmodel.path, tokenizer=tokenizer, boundaries=True).compute_mask(tf.constant(["a b", ""]))
    assert np.asarray(mask).tolist() == [[True] * 4, [True, True, False, False]]


OWN = ["I don't like it.", "", "Lovely!"]
OWN_TOKENS = [["I", "do", "n't", "like", "it", "."], [], ["Lovely", "!"]]


@pytest.fixture(scope="module")
def with_penn(savedmodel, plain, tmp_path_factory):
    """The layer of a model that splits text by the Penn Treebank's rules, with the weights of `plain`."""
    layer = elmo_tf.ELMo(checks.copy_with_tokenizer(savedmodel.path, tmp_path_factory.mktemp("penn") / "1", "penn"))
    layer._compiled = plain._compiled
    return layer


def test_sentences_are_split_by_the_sources_own_tokenizer_and_tokens_never_again(with_penn, plain):
    assert (with_penn.tokenizer, plain.tokenizer) == ("penn", "whitespace")
    assert elmo_tf.ELMo("english").tokenizer == "penn"
    expected = plain(OWN_TOKENS)
    for sentences in (OWN, tuple(OWN), np.array(OWN), np.array(OWN, object), tf.constant(OWN)):
        vectors = with_penn(sentences)
        np.testing.assert_allclose(vectors, expected, **checks.TOLERANCE)
        np.testing.assert_array_equal(vectors._keras_mask, expected._keras_mask)
    tokens = [["I", "don't", "like", "it."], ["a b"]]
    np.testing.assert_array_equal(with_penn.char_ids(tokens), plain.char_ids(tokens))
    np.testing.assert_array_equal(with_penn(tokens)._keras_mask, [[True] * 4, [True, False, False, False]])


@pytest.mark.parametrize("kind", ["functional", "sequential", "subclassed"])
def test_a_model_takes_sentences_and_is_the_same_after_saving_and_loading(tmp_path, kind):
    layer, pooling = elmo_tf.ELMo(ONE_LAYER, tokenizer="penn"), elmo_tf.SequencePooling(["mean"])
    sentences = keras.Input((), dtype="string")
    model = {
        "functional": lambda: keras.Model(sentences, keras.layers.Dense(3)(pooling(layer(sentences)))),
        "sequential": lambda: keras.Sequential([sentences, layer, pooling, keras.layers.Dense(3)]),
        "subclassed": lambda: Subclassed(layer),
    }[kind]()
    if kind == "functional":
        model.compile("sgd", "mse")
        model.fit(np.array(OWN, object), np.zeros((3, 3)), verbose=0)
    answers = model(tf.constant(OWN))
    vectors = layer(OWN_TOKENS)
    expected = model.layers[-1](vectors if kind == "subclassed" else pooling(vectors))
    np.testing.assert_allclose(answers, expected, **checks.TOLERANCE)
    model.save(tmp_path / "model.keras")
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "model.keras")(tf.constant(OWN)), answers)


def test_a_file_of_a_layer_that_took_tokens_alone_still_does(with_penn):
    """Before layers knew their source's tokenizer, `None` was stored for those that took tokens."""
    old = elmo_tf.ELMo.from_config(with_penn.get_config() | {"tokenizer": None})
    assert old.tokenizer is None
    assert old(OWN_TOKENS).shape == (3, 6, 16)
    with pytest.raises(InputError, match=r"inputs: expected tokens, .*, found string \(3,\); .* without a tokenizer"):
        old(OWN)


def test_a_network_in_memory_has_no_tokenizer_until_one_is_named(plain):
    with pytest.raises(InputError, match=r"found string \(1,\); .*so name one: ELMo\(..., tokenizer='penn'\)"):
        elmo_tf.ELMo(plain.bilm)(["a bank."])
    assert elmo_tf.ELMo(plain.bilm, tokenizer="penn")(["a bank."]).shape == (1, 3, 16)


def test_the_input_of_other_text_layers_is_not_read_as_one_token_a_sentence(plain):
    message = r"found string \(None, 1\); for sentences keras.Input\(\(\), dtype='string'\)"
    with pytest.raises(InputError, match=message):
        plain(keras.Input((1,), dtype="string"))


class Column:
    """A column of a table, as far as the layer looks at it."""

    def __init__(self, values):
        self.values = values

    def to_numpy(self):
        return np.array(self.values, object)


class Table:
    columns = ("text",)


def test_a_column_of_a_table_is_a_batch_and_a_table_is_not(with_penn):
    np.testing.assert_array_equal(with_penn.char_ids(Column(OWN)), with_penn.char_ids(OWN))
    np.testing.assert_array_equal(with_penn.char_ids(Column(OWN_TOKENS)), with_penn.char_ids(OWN))
    with pytest.raises(InputError, match=r"^inputs: expected one column of a table, found a Table"):
        with_penn(Table())


def test_what_the_layer_does_not_take_is_named(with_options):
    with pytest.raises(InputError, match=r"^tokenizer: expected one of whitespace, .*, found 'moses'$"):
        with_options(tokenizer="moses")
