"""The contract of an exported model: its signatures, states, files and settings, each listed only here.

Plain Python without imports from this project, because `standalone_checker.py` loads this file by its path.
"""

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
SYSTEM_FILE = "assets.extra/system.json"  # only in exports of `elmo-tf task`
WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"

# What can be asked for of a token's layers.
LAYERS = ("all", "top", "average", "sum", "mix")

# Precisions of the matrix products of a model in memory. A SavedModel computes in float32: it may run on any machine.
PRECISIONS = ("float32", "bfloat16")

# Attributes of the loaded object besides its functions, as reusable SavedModels have them.
ATTRIBUTES = ("trainable_variables", "variables", "regularization_losses")

# The arrays in the file of sample vectors: these, and the outputs that are not parts of other outputs.
SAMPLE_FIELDS = ("sentences", "tokenizer", "tolerance")
SAMPLED_OUTPUTS = ("layers", "elmo", "default", "mask")
SCORE_OUTPUTS = ("log_probs", "total")  # with a softmax

# LSTM states: for each direction and layer these parts, and the dimension of each.
DIRECTIONS = ("forward", "backward")
STATE_PARTS = {"cell": "units", "recurrent": "projection_dim"}


class Tensor(NamedTuple):
    """An input of a signature."""

    dtype: str
    shape: tuple[str, ...]  # names of dimensions: "batch" and "max_length" of any size, the others of the model's


STRINGS = {"strings": Tensor("string", ("batch",))}
TOKENS = {"tokens": Tensor("string", ("batch", "max_length")), "sequence_len": Tensor("int32", ("batch",))}
CHAR_IDS = {"char_ids": Tensor("int32", ("batch", "max_length", "max_chars_per_token"))}

# The functions of the loaded object that are signatures, and their inputs; `stream` takes the states as well.
FUNCTIONS = {"default": STRINGS, "tokens": TOKENS, "char_ids": CHAR_IDS, "stream": TOKENS}
# An export with its softmax has one more signature, and a function with the same name.
SCORE = "score"
# The function of each signature.
SIGNATURES = {"serving_default": "default", **{name: name for name in FUNCTIONS}}


def text_outputs(function: str, tokenizer: str) -> tuple[str, ...]:
    """Returns the outputs of a function that say what its vectors belong to.

    `offsets` are the bytes of the sentence at which each token begins and ends. Every signature also has the outputs of
    `root.py`, and `stream` returns the states.
    """
    if function not in ("default", "tokens"):
        return ()
    return ("tokens", "offsets") if function == "default" and tokenizer != "whitespace" else ("tokens",)


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
