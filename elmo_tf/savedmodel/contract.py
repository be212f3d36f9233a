"""The contract of an exported model: its signatures, files and settings, each listed only here."""

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


class Tensor(NamedTuple):
    """An input of a signature."""

    dtype: str
    shape: tuple[str, ...]  # names of dimensions: "batch" and "max_length" of any size, the others of the model's


STRINGS = {"strings": Tensor("string", ("batch",))}
TOKENS = {"tokens": Tensor("string", ("batch", "max_length")), "sequence_len": Tensor("int32", ("batch",))}
CHAR_IDS = {"char_ids": Tensor("int32", ("batch", "max_length", "max_chars_per_token"))}

# The functions of the loaded object that are signatures, and their inputs.
FUNCTIONS = {"default": STRINGS, "tokens": TOKENS, "char_ids": CHAR_IDS}
# An export with its softmax has another signature, which takes `STRINGS`, and a function with the same name.
SCORE = "score"
# The function of each signature.
SIGNATURES = {"serving_default": "default", **{name: name for name in FUNCTIONS}}
