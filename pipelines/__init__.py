"""Apache Beam pipelines: text to records. Thin `run(argv)` functions over labelled PTransforms."""

import logging


def _is_news(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("apitools not found")


# `import apache_beam` says so in every process where the client of Google's cloud is not there; nobody needs it here.
logging.getLogger().addFilter(_is_news)
