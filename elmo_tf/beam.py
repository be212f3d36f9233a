"""For users' own Apache Beam pipelines: `ElmoModelHandler` for RunInference, `ElmoEmbeddings` for MLTransform and RAG.

Needs `elmo-tf[beam]`.
"""

from elmo_tf import extras

with extras.required():
    from elmo_tf.pipelines.embed.embeddings import ElmoEmbeddings
    from elmo_tf.pipelines.embed.model_handler import ElmoModelHandler

__all__ = ["ElmoEmbeddings", "ElmoModelHandler"]
