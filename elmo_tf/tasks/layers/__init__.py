"""Keras layers that only the task systems use; each works on its own, as those of `elmo_tf/model/` do."""
