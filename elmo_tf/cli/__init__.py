"""The command line `elmo-tf`: each subcommand reads its arguments and calls the library.

Exit status 0, 1 (failed: one line on stderr), 2 (usage) or 130 (interrupted). Logs go to stderr, results to stdout.
"""

import argparse
import contextlib
import logging
import os
import sys

from elmo_tf import __version__
from elmo_tf.cli import models, training, use
from elmo_tf.errors import InputError


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns its exit status."""
    argv = sys.argv[1:] if argv is None else argv
    _configure_logging()
    try:
        if argv[:1] == ["preprocess"]:  # its options are Beam's as well, which argparse need not know
            from pipelines import preprocess

            preprocess.run(argv[1:])
        else:
            arguments = _parser().parse_args(argv)
            with _quiet_stderr():
                import tensorflow

                gpus = tensorflow.config.list_physical_devices("GPU")  # the first look for them has its say as well
                if gpus and not arguments.on_gpu:
                    tensorflow.config.set_visible_devices([], "GPU")
            arguments.run(arguments)
    except InputError as error:
        return _fail(error)
    except OSError as error:
        return _fail(f"{error.strerror}: {error.filename}" if error.filename else error)
    except KeyboardInterrupt as interrupt:
        print("elmo-tf:", interrupt.args[0] if interrupt.args else "interrupted", file=sys.stderr)
        return 130
    return 0


def _fail(message: object) -> int:
    print("elmo-tf: error:", " ".join(str(message).split()), file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="elmo-tf", description="ELMo: from a text corpus to a SavedModel.")
    parser.add_argument("--version", action="version", version=f"elmo-tf {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    commands.add_parser("preprocess", help="make a folder of records from text, with Apache Beam", add_help=False)
    for module in (training, models, use):
        module.add_commands(commands)
    return parser


def _configure_logging() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    logging.basicConfig(format="%(message)s", stream=sys.stderr, level=logging.WARNING)
    logging.getLogger("elmo_tf").setLevel(logging.INFO)
    logging.getLogger("tensorflow").setLevel(logging.ERROR)


@contextlib.contextmanager
def _quiet_stderr():
    """Keeps what TensorFlow's C++ side says of itself when loaded off the terminal; Python's errors still come out."""
    if os.environ["TF_CPP_MIN_LOG_LEVEL"] in ("0", "1"):  # somebody wants to see it
        yield
        return
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
