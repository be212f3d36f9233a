"""Vectors of tokens that an engine remembers from call to call: a token's vector does not depend on its sentence.

bilm-tf's `dump_token_embeddings` and AllenNLP's `vocab_to_cache` do so for a vocabulary that the user gives.
"""

import threading
from collections.abc import Callable, Sequence

import numpy as np

from elmo_tf.config import ModelConfig
from elmo_tf.text import char_ids

MAX_TOKENS = 20_000  # 10 MB of `english`, 41 MB of the original size
_MAX_BYTES = 100  # of a token; longer ones are rare


class TokenVectors:
    """x_k of tokens. The first `MAX_TOKENS` different ones are remembered. Several threads may use it at the same time.

    Args:
        compute: returns vectors `(n, projection_dim)`, given character ids `(n, max_chars)`.
        config: the network's sizes.
        dtype: of the vectors.
    """

    def __init__(self, compute: Callable[[np.ndarray], np.ndarray], config: ModelConfig, dtype: type = np.float32):
        self._arguments = compute, config, dtype
        self._compute, self._max_chars = compute, config.char_cnn.max_chars_per_token
        self._rows: dict[bytes, int] = {}
        # Its rows take memory when they are written.
        self._vectors: np.ndarray = np.empty((MAX_TOKENS, config.lstm.projection_dim), dtype)
        self._lock = threading.Lock()

    def __call__(self, tokens: Sequence[bytes]) -> np.ndarray:
        """Returns the vectors of different tokens, `(tokens, projection_dim)`."""
        rows = np.array([self._rows.get(token, -1) for token in tokens])
        vectors = self._vectors[rows]
        missing = np.flatnonzero(rows < 0).tolist()
        if missing:
            new_tokens = [tokens[number] for number in missing]
            vectors[missing] = self._compute(char_ids.encode_tokens(new_tokens, self._max_chars))
            self._remember(new_tokens, vectors[missing])
        return vectors

    def empty(self) -> "TokenVectors":
        """Returns the same, with nothing remembered."""
        return TokenVectors(*self._arguments)

    def _remember(self, tokens: Sequence[bytes], vectors: np.ndarray) -> None:
        with self._lock:
            for token, vector in zip(tokens, vectors, strict=True):
                row = len(self._rows)
                if row < len(self._vectors) and len(token) <= _MAX_BYTES and token not in self._rows:
                    self._vectors[row] = vector  # before other threads find it
                    self._rows[token] = row
