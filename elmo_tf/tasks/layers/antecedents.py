"""Scores of pairs of spans: which earlier span a span refers to."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from elmo_tf.model.variables import Tracked
from elmo_tf.tasks.layers.feedforward import ScoreWeights, add_score_weights, dropout, next_seeds, score, split_seed

NO_ANTECEDENT = -1e30  # the score of a missing antecedent
# The lowest distance, in spans, of each bin: 0, 1, 2, 3, 4, 5-7, 8-15, 16-31, 32-63, 64 and more.
BINS = (0, 1, 2, 3, 4, 5, 8, 16, 32, 64)
_BLOCK = 16  # spans whose pairs are scored together


@keras.saving.register_keras_serializable("elmo_tf")
class AntecedentScores(Tracked, keras.layers.Layer):
    """Scores, for each span, the nearest earlier spans of its document as antecedents; no antecedent scores 0.

    A pair's score is the sum of both spans' own scores and that of a network with two hidden layers, which reads
    `[g_i; g_j; g_i * g_j; features]`. Features are learned vectors of the distance in spans, of whether both have the
    same speaker, and of the document's genre. Pairs are scored in blocks, forward and backward.

    Args:
        max_antecedents: candidate antecedents of a span.
        feature_dim: of each feature's vector.
        units: of the two hidden layers.
        num_genres: known genres; 0: genre is no feature.
        speakers: whether speakers are a feature.
        dropout_rate: of the hidden layers and the features.

    Call arguments:
        inputs: a dict: the outputs of `MentionSpans`, `vectors` `(spans, dim)`, `scores` `(spans,)` and `positions`
            `(spans, 2)`, and of the sentences
            `documents`: int32 `(sentences,)`, the document of each;
            `genres`: int32 `(sentences,)`, from 1; 0: an unknown genre;
            `speakers`: string `(sentences, time)`, of each word.

    Returns:
        float32 `(spans, 1 + antecedents)`: column 0 is no antecedent, column k the k-th span before; `NO_ANTECEDENT`
        where there is no such span.

    Reference:
        Lee et al. 2017, sections 4 and 5.
    """

    collections = ("_tables", "_score_weights")

    def __init__(
        self,
        max_antecedents: int,
        feature_dim: int = 20,
        units: int = 150,
        num_genres: int = 0,
        speakers: bool = True,
        dropout_rate: float = 0.0,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.max_antecedents = max_antecedents
        self.feature_dim = feature_dim
        self.units = units
        self.num_genres = num_genres
        self.speakers = speakers
        self.dropout_rate = dropout_rate
        self.supports_jit = False  # speakers are strings, and the number of spans varies
        self._seeds = keras.random.SeedGenerator()

    def build(self, input_shape):
        self._dim = input_shape["vectors"][-1]
        rows = {"distances": len(BINS)} | ({"same_speaker": 2} if self.speakers else {})
        rows |= {"genres": self.num_genres} if self.num_genres else {}
        self._tables = [self.add_weight(name=name, shape=(size, self.feature_dim)) for name, size in rows.items()]
        self._score_weights = add_score_weights(self, 3 * self._dim + len(rows) * self.feature_dim, self.units)

    def call(self, inputs, training=False):
        vectors, scores = inputs["vectors"], inputs["scores"]
        spans = tf.shape(vectors)[0]
        columns = tf.maximum(tf.minimum(self.max_antecedents, spans - 1), 1)
        attributes = self._span_attributes(inputs)
        seed = next_seeds(self._seeds, self.dropout_rate, training)[0]
        weights = ScoreWeights(*self._score_weights)
        parts = (self._dim,) * 3 + (len(self._tables) * self.feature_dim,)
        span_kernel, antecedent_kernel, product, features = tf.split(tf.convert_to_tensor(weights.first), parts)
        sums = [tf.matmul(vectors, antecedent_kernel), tf.matmul(vectors, span_kernel)]
        tensors = [vectors, *sums, *self._tables, product, features, *weights[1:]]
        scorer = _PairScorer(self.max_antecedents, self.num_genres, self.speakers, self.dropout_rate)
        pair_scores = in_blocks(scorer, (attributes, seed, columns), tensors, spans, _BLOCK)
        antecedents = tf.range(spans)[:, None] - 1 - tf.range(columns)[None]
        exists = antecedents >= 0
        antecedents = tf.maximum(antecedents, 0)
        exists &= tf.gather(attributes["documents"], antecedents) == attributes["documents"][:, None]
        # Half precision has no number as low as NO_ANTECEDENT.
        totals = tf.cast(pair_scores + scores[:, None] + tf.gather(scores, antecedents), tf.float32)
        totals = tf.where(exists, totals, NO_ANTECEDENT)
        return tf.concat([tf.zeros((spans, 1), totals.dtype), totals], 1)

    def compute_mask(self, inputs, mask=None):
        return None

    def compute_output_spec(self, inputs, training=False):
        return keras.KerasTensor((None, None), "float32")

    def _span_attributes(self, inputs: dict) -> dict[str, tf.Tensor]:
        """Returns each span's document, genre and speaker as integers, `(spans,)`."""
        sentences = inputs["positions"][:, 0]
        attributes = {name: tf.gather(inputs[name], sentences) for name in ("documents", "genres")}
        if self.speakers:
            with tf.device("CPU"):
                attributes["speakers"] = tf.unique(tf.gather_nd(inputs["speakers"], inputs["positions"]))[1]
        return attributes


class _PairScorer(NamedTuple):
    """Scores one block of spans. Holds no tensors, because TensorFlow never releases it (see `in_blocks`).

    The fields are those of the layer.
    """

    max_antecedents: int
    num_genres: int
    speakers: bool
    dropout_rate: float

    def __call__(self, first, end, constants, vectors, early, late, *weights):
        attributes, seed, columns = constants
        num_tables = len(weights) - len(ScoreWeights._fields) - 1
        tables, (product, features, *others) = weights[:num_tables], weights[num_tables:]
        begin = tf.maximum(first - self.max_antecedents, 0)
        seeds = split_seed(seed, first)
        pairs = vectors[first:end, None] * vectors[None, begin:end]
        feature_vectors = dropout(self._features(tables, attributes, first, end, begin), self.dropout_rate, seeds[0])
        sums = tf.tensordot(pairs, product, 1) + tf.tensordot(feature_vectors, features, 1)
        sums += late[first:end, None] + early[None, begin:end]
        pair_scores = score(sums, ScoreWeights(product, *others), self.dropout_rate, seeds[1])
        # Picks each span's candidates from the block's columns, the nearest first.
        candidates = tf.range(first, end)[:, None] - 1 - tf.range(columns)[None] - begin
        return tf.gather(pair_scores, tf.maximum(candidates, 0), batch_dims=1)

    def _features(
        self, tables: tuple, attributes: dict[str, tf.Tensor], first: tf.Tensor, end: tf.Tensor, begin: tf.Tensor
    ) -> tf.Tensor:
        """Returns the features' vectors of a block's pairs, float32 `(spans, earlier spans, features * dim)`."""
        distances = tf.range(first, end)[:, None] - tf.range(begin, end)[None]
        features = [tf.gather(tables[0], distance_bins(distances))]
        if self.speakers:
            names = attributes["speakers"]
            same = names[first:end, None] == names[None, begin:end]
            features.append(tf.gather(tables[1], tf.cast(same, tf.int32)))
        if self.num_genres:
            # An unknown genre has the vector 0.
            genres = tf.one_hot(attributes["genres"][first:end] - 1, self.num_genres, dtype=tables[-1].dtype)
            features.append(tf.tile(tf.matmul(genres, tables[-1])[:, None], (1, end - begin, 1)))
        return tf.concat(features, -1)


def distance_bins(distances: tf.Tensor) -> tf.Tensor:
    """Returns the bin of each distance, int32; the first for distances below 0."""
    reached = distances[..., None] >= tf.constant(BINS[1:])
    return tf.reduce_sum(tf.cast(reached, tf.int32), -1)


def in_blocks(
    function: Callable[..., tf.Tensor], constants: Any, inputs: Sequence[tf.Tensor], rows: tf.Tensor, block: int
) -> tf.Tensor:
    """Returns `rows` rows, at least 1, which `function` computes `block` at a time.

    The backward pass computes each block again: memory holds the values of one block, whatever the number of rows.

    Args:
        function: called with the first row of a block, the row after its last (int32 scalars), `constants` and
            `inputs`; returns float32 `(block's rows, width)`. Its random numbers depend on its arguments alone.
            Hashable and without tensors, because TensorFlow keeps a reference forever; equal functions share one
            graph.
        constants: a structure of tensors that have no gradients.
        inputs: float tensors, which have gradients.
        rows: int32 scalar.
        block: rows of a block.
    """
    return _in_blocks(function, block, rows, constants, *map(tf.convert_to_tensor, inputs))


# A separate graph, because TensorFlow never releases the graph of a custom gradient; it must not capture weights.
@tf.function(autograph=False, reduce_retracing=True)
def _in_blocks(function, block, rows, constants, *inputs):
    def step(number, parts):
        first, end = number * block, tf.minimum((number + 1) * block, rows)
        part = tf.recompute_grad(lambda *tensors: function(first, end, constants, *tensors))(*inputs)
        return number + 1, parts.write(number, part)

    blocks = (rows + block - 1) // block
    parts = tf.TensorArray(inputs[0].dtype, blocks, infer_shape=False)
    loop = tf.while_loop(lambda number, _: number < blocks, step, (0, parts), parallel_iterations=1)
    return loop[1].concat()
