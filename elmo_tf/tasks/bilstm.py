"""The bidirectional LSTM that several systems stack."""

import keras


class BiLSTM:
    """Layers of a functional model: variational dropout of the input, then an LSTM in each direction.

    In variational dropout, all tokens of a sentence share a mask. `penalty` is the L2 penalty of the weights without
    the biases. All calls share the weights.
    """

    def __init__(self, units: int, dropout_rate: float = 0.0, penalty: float = 0.0):
        penalized = keras.regularizers.L2(penalty) if penalty else None
        self._dropout = keras.layers.SpatialDropout1D(dropout_rate)
        options = {"return_sequences": True, "kernel_regularizer": penalized, "recurrent_regularizer": penalized}
        self._lstms = keras.layers.Bidirectional(keras.layers.LSTM(units, **options))

    def __call__(self, vectors: keras.KerasTensor) -> keras.KerasTensor:
        """Returns `(batch, time, 2 * units)` for `(batch, time, dim)` with a Keras mask."""
        return self._lstms(self._dropout(vectors))
