"""The command line `elmo-tf`: each subcommand reads its arguments and calls the library.

Exit status 0, 1 (failed: one line on stderr), 2 (usage), 130 (interrupted) or 141 (the reader of stdout closed it).
Logs go to stderr, results to stdout.
"""

import functools
import itertools
import logging
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable

from elmo_tf import __version__
from elmo_tf.cli import quiet
from elmo_tf.cli.arguments import Parser, flags_of
from elmo_tf.errors import InputError, explain_out_of_memory, printable
from elmo_tf.extras import check_keras_backend, missing_extra


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns its exit status."""
    argv = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in argv
    argv = [argument for argument in argv if argument != "--debug"]
    quiet.prepare_streams()
    _configure_logging()
    flags: Callable[[], dict[str, str]] = dict
    try:
        with explain_out_of_memory():
            if argv[:1] in (["preprocess"], ["embed"]):  # they take Beam's options, too
                from elmo_tf.cli import jobs

                flags = functools.partial(jobs.flags, argv[0])
                on_gpu = argv[0] == "embed"
                jobs.run(argv[0], argv[1:], load_tensorflow=lambda: quiet.load_tensorflow(on_gpu))
            else:
                arguments = _parser().parse_args(argv)
                flags = functools.partial(flags_of, arguments.parser)
                if arguments.needs_tensorflow:
                    check_keras_backend()
                    quiet.keep_freed_memory()
                    quiet.load_tensorflow(arguments.on_gpu, arguments.gpus)
                arguments.run(arguments)
        sys.stdout.flush()
    except InputError as error:
        return _fail(_with_flags(error, flags(), argv), debug)
    except ModuleNotFoundError as error:
        if (message := missing_extra(error)) is None:
            raise
        return _fail(message, debug)
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _stdout_is_closed():
            with open(os.devnull, "wb") as devnull:  # Python flushes stdout at exit
                os.dup2(devnull.fileno(), sys.stdout.fileno())
            return 128 + signal.SIGPIPE
        return _fail(f"{error.strerror}: {error.filename}" if error.filename else error.strerror or error, debug)
    except KeyboardInterrupt as interrupt:
        _print_message("elmo-tf: " + (interrupt.args[0] if interrupt.args else "interrupted"))
        return 130
    return 0


def _with_flags(error: InputError, flags: dict[str, str], argv: list[str]) -> str:
    """Returns the error's message, with flags instead of the parameters at its start. A path stays."""
    values = itertools.dropwhile(lambda word: not word.startswith("--"), argv)
    if error.subject in values:  # `--heldout data`: a folder of that name, not the parameter
        return str(error)
    first = ", ".join(flags.get(name, name) for name in error.subject.split(", "))
    return first + str(error).removeprefix(error.subject)


def _fail(message: object, debug: bool) -> int:
    """Prints the exception being handled as one line, preceded by its traceback if `debug` is set."""
    if debug:
        traceback.print_exc()
    _print_message("elmo-tf: error: " + " ".join(str(message).split()))
    return 1


def _print_message(message: str) -> None:
    print(f"{_erase_line()}{printable(message)}", file=sys.stderr)


def _erase_line() -> str:
    """Returns the escape that erases a progress line, which may be longer than the message replacing it."""
    return "\033[K" if sys.stderr.isatty() else ""


def _stdout_is_closed() -> bool:
    """Returns whether the reader of stdout, `head` for instance, has closed it."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), select.POLLOUT)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    # Raised for a stdout that is not a file.
    except OSError:
        return False


def _parser() -> Parser:
    # Called inside `main`'s `try`, so Ctrl-C during imports prints no traceback.
    from elmo_tf.cli import corpus, info, models, probes, tasks, training, use

    parser = Parser(prog="elmo-tf", description="ELMo: from a text corpus to a SavedModel.")
    parser.add_argument("--version", action="version", version=f"elmo-tf {__version__}")
    parser.add_argument("--debug", action="store_true", help="with any command: print the traceback of an error")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    commands.add_parser("preprocess", help="turn text into a folder of records, with Apache Beam", add_help=False)
    commands.add_parser("embed", help="compute the vectors of a text, with Apache Beam", add_help=False)
    for module in (corpus, training, models, use, probes, tasks, info):
        module.add_commands(commands)
    return parser


def _configure_logging() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    logging.basicConfig(format=f"{_erase_line()}%(message)s", stream=sys.stderr, level=logging.WARNING)
    # Beam's note about Google's missing client.
    logging.getLogger().addFilter(lambda record: not record.getMessage().startswith("apitools not found"))
    logging.getLogger("elmo_tf").setLevel(logging.INFO)
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
