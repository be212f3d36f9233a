"""The contract of an exported model: its signatures, states, files and settings. Every list of them stands here only.

Plain Python without imports from this project, because `standalone_checker.py` loads this file by its path.
"""

from collections.abc import Sized
from typing import NamedTuple

# Files, as paths in a version's folder. A folder with a graph is a SavedModel.
GRAPH_FILE = "saved_model.pb"
VARIABLES_PREFIX = "variables/variables"
CONFIG_FILE = "assets/config.json"
PROVENANCE_FILE = "assets/provenance.json"
VOCABULARY_FILE = "assets/vocab.txt"  # only with a softmax
# TensorFlow leaves the folder `assets.extra` to the exporting program.
CHECKSUMS_FILE = "assets.extra/checksums.json"
SAMPLE_VECTORS_FILE = "assets.extra/sample_vectors.npz"
WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"
UNNUMBERED = "unnumbered-"  # how the name of an export's folder begins until it gets its number

# What can be asked for of a token's layers.
LAYERS = ("all", "top", "average", "sum", "mix")

# Settings of an export.
TOKENIZERS = ("whitespace", "unicode", "characters")

# Attributes of the loaded object beside its functions, as reusable SavedModels have them.
ATTRIBUTES = ("trainable_variables", "variables", "regularization_losses")

# The arrays in the file of sample vectors: these, and the outputs that are not parts of other outputs.
SAMPLE_FIELDS = ("sentences", "tokenizer", "tolerance")
SAMPLED_OUTPUTS = ("layers", "elmo", "default", "mask")
SCORE_OUTPUTS = ("log_probs", "total")  # with a softmax

# LSTM states: for each direction and layer these parts, and the dimension of each.
DIRECTIONS = ("forward", "backward")
STATE_PARTS = {"cell": "units", "recurrent": "projection_dim"}


class Tensor(NamedTuple):
    """An input or output of a signature."""

    dtype: str
    shape: tuple[str, ...]  # names of dimensions: "batch" and "max_length" of any size, the others of the model's


STRINGS = {"strings": Tensor("string", ("batch",))}
TOKENS = {"tokens": Tensor("string", ("batch", "max_length")), "sequence_len": Tensor("int32", ("batch",))}
CHAR_IDS = {"char_ids": Tensor("int32", ("batch", "max_length", "max_chars_per_token"))}

# The functions of the loaded object that are signatures, and their inputs; `stream` takes the states as well.
FUNCTIONS = {"default": STRINGS, "tokens": TOKENS, "char_ids": CHAR_IDS, "stream": TOKENS}
# An export with its softmax has one more signature, and a function of its name.
SCORE = "score"
# The function behind each signature.
SIGNATURES = {"serving_default": "default", **{name: name for name in FUNCTIONS}}

_VECTORS = Tensor("float32", ("batch", "max_length", "dim"))
# Every signature has these outputs and one `lstm_outputs` a layer; `stream` returns the states as well, and the
# functions of `TEXT_OUTPUTS` return what their vectors belong to.
OUTPUTS = {
    "layers": Tensor("float32", ("batch", "num_layers", "max_length", "dim")),
    "word_emb": Tensor("float32", ("batch", "max_length", "projection_dim")),
    "elmo": _VECTORS,
    "default": Tensor("float32", ("batch", "dim")),
    "mask": Tensor("bool", ("batch", "max_length")),
}
_TOKEN = {"tokens": Tensor("string", ("batch", "max_length"))}  # of each vector; "" at padding
# Where the token begins and ends in the sentence, in bytes; 0 at padding.
_OFFSETS = {"offsets": Tensor("int32", ("batch", "max_length", "begin_and_end"))}
# By function and tokenizer.
TEXT_OUTPUTS = {
    "default": {"whitespace": _TOKEN, "unicode": _TOKEN | _OFFSETS, "characters": _TOKEN | _OFFSETS},
    "tokens": dict.fromkeys(TOKENIZERS, _TOKEN),
}


def lstm_outputs(number: int) -> str:
    """Returns the name of the output with the vectors of biLSTM layer `number`, counted from 1."""
    return f"lstm_outputs{number}"


def states(num_lstm_layers: int) -> dict[str, Tensor]:
    """Returns the LSTM states by name: by direction, layer and part, as `tf.nest.flatten` orders them."""
    return {
        f"{direction}_{part}{number}": Tensor("float32", ("batch", dimension))
        for direction in DIRECTIONS
        for number in range(1, num_lstm_layers + 1)
        for part, dimension in STATE_PARTS.items()
    }


def num_lstm_layers(states_by_name: Sized) -> int:
    """Returns how many biLSTM layers have these states."""
    return len(states_by_name) // (len(DIRECTIONS) * len(STATE_PARTS))


def inputs(signature: str, num_lstm_layers: int) -> dict[str, Tensor]:
    """Returns all inputs of a signature of a model with so many biLSTM layers, by name."""
    function = SIGNATURES[signature]
    return FUNCTIONS[function] | (states(num_lstm_layers) if function == "stream" else {})


def outputs(signature: str, num_lstm_layers: int, tokenizer: str) -> dict[str, Tensor]:
    """Returns all outputs of a signature of a model with so many biLSTM layers and this tokenizer, by name."""
    layers = {lstm_outputs(number): _VECTORS for number in range(1, num_lstm_layers + 1)}
    function = SIGNATURES[signature]
    texts = TEXT_OUTPUTS.get(function, {}).get(tokenizer, {})
    return OUTPUTS | layers | texts | (states(num_lstm_layers) if function == "stream" else {})


def sizes(num_lstm_layers: int, units: int, projection_dim: int, max_chars_per_token: int) -> dict[str, int]:
    """Returns the sizes of a model's dimensions, by the names in `Tensor.shape`."""
    return {
        "num_layers": num_lstm_layers + 1,
        "units": units,
        "projection_dim": projection_dim,
        "dim": 2 * projection_dim,
        "max_chars_per_token": max_chars_per_token,
        "begin_and_end": 2,
    }
