"""Apache Beam pipelines: text to records, text to vectors. Thin `run(argv)` functions over labelled PTransforms."""

import logging

# What Beam says in every process about parts of itself that nobody needs here: the client of Google's cloud, and for
# want of PyTorch the memory that RunInference would measure.
_NO_NEWS = ("apitools not found", "Resource module is not available")


def _is_news(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(_NO_NEWS)


logging.getLogger().addFilter(_is_news)
