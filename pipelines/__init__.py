"""Apache Beam pipelines: text to records, text to vectors. Thin `run(argv)` functions over labelled PTransforms."""

import logging

# Beam logs these in every process: the client of Google's cloud is not installed, and neither is PyTorch, whose memory
# RunInference would measure.
_IRRELEVANT = ("apitools not found", "Resource module is not available")


def _is_relevant(record: logging.LogRecord) -> bool:
    # Messages of a remote job are Java's tracebacks of what is raised again here.
    return record.module != "portable_runner" and not record.getMessage().startswith(_IRRELEVANT)


logging.getLogger().addFilter(_is_relevant)
