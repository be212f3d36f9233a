"""Keras layers that only the task systems use. Each works alone, like the layers of `elmo_tf/model/`."""
