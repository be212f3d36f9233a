"""Run as a module in a process of its own: makes a SavedModel of a published model's files.

    python -m elmo_tf.savedmodel.conversion NAME OPTIONS WEIGHTS OUTPUT

Exit status `INPUT_ERROR`: the last line of stderr is the message of an `InputError`. Any other than 0: a failure.
"""

import sys

from elmo_tf.errors import InputError, memory_explained, reason

# None of Python's own.
INPUT_ERROR = 3


def convert(name: str, options: str, weights: str, output: str) -> None:
    """Writes the model's SavedModel, with the settings that `elmo-tf import` has by default, to `output/1/`."""
    # Not at the top: the process that starts this one imports this file for its name.
    from elmo_tf.published import weights as published_weights  # noqa: PLC0415
    from elmo_tf.savedmodel import writing  # noqa: PLC0415

    config, bilm = published_weights.load(options, weights)
    provenance = {"model": name} | published_weights.provenance(options, weights)
    writing.export(bilm, config, output, provenance=provenance)


if __name__ == "__main__":
    try:
        with memory_explained():
            convert(*sys.argv[1:])
    except InputError as error:
        print(reason(error), file=sys.stderr)
        sys.exit(INPUT_ERROR)
