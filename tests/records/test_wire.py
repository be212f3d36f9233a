"""Examples encoded by hand are those of protobuf."""

import random

import numpy as np
import pytest
import tensorflow as tf

from elmo_tf.records import vector_files, wire


def example(**features: list[int] | list[bytes]) -> bytes:
    made = tf.train.Example()
    for name, values in features.items():
        feature = made.features.feature[name]
        kind = feature.int64_list if values and isinstance(values[0], int) else feature.bytes_list
        kind.SetInParent()
        kind.value.extend(values)
    return made.SerializeToString(deterministic=True)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 20, 40, 130, 500, 5000])
def test_examples_are_the_bytes_of_protobuf(count):
    choose = random.Random(count)
    token_ids = [choose.choice([0, 1, 2, 127, 128, 16_383, 16_384, 793_470]) for _ in range(count + 2)]
    lengths = bytes(choose.randrange(49) for _ in range(count))
    text = choose.randbytes(sum(lengths))
    written = wire.encode_example(b"".join(map(wire.varint, token_ids)), text, lengths)
    assert written == example(token_ids=token_ids, char_ids=[text], char_lengths=[lengths])


@pytest.mark.parametrize(("line", "num_tokens"), [(0, 0), (1, 1), (127, 2), (128, 30), (2**40, 300)])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_examples_of_vectors_are_the_bytes_of_protobuf(line, num_tokens, dtype):
    choose = random.Random(num_tokens)
    tokens = [choose.randbytes(choose.choice([0, 1, 127, 128, 1000])) for _ in range(num_tokens)]
    vectors = np.random.default_rng(0).normal(size=(3, num_tokens, 50)).astype(dtype)
    features = {"dtype": [dtype.encode()], "line": [line], "shape": vectors.shape}
    features |= {"tokens": tokens, "vectors": [vectors.tobytes()]}
    assert vector_files.encode(line, tokens, vectors) == example(**features)
    assert vector_files.encode(line, tokens, vectors, b"a name") == example(**features, id=[b"a name"])
    for identifier in (b"", b"a name"):
        decoded = vector_files.decode(vector_files.encode(line, tokens, vectors, identifier))
        assert decoded[:2] == (identifier or b"%d" % line, tokens)
        assert decoded[2].dtype == dtype
        np.testing.assert_array_equal(decoded[2], vectors)
