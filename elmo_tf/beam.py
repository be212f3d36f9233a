"""For users' own Apache Beam pipelines: `ElmoModelHandler` for RunInference. Needs `elmo-tf[beam]`."""

from elmo_tf import extras

with extras.required():
    from elmo_tf.pipelines.embed.model_handler import ElmoModelHandler

__all__ = ["ElmoModelHandler"]
