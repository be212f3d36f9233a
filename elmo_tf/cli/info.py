"""The command `info`: versions, the machine, and what elmo-tf would choose on it; for bug reports."""

import argparse
import platform
from collections.abc import Callable
from typing import Any

from elmo_tf import __version__, extras, precision
from elmo_tf.cli import quiet
from elmo_tf.cli.arguments import add_command
from elmo_tf.display import table, with_count
from elmo_tf.errors import InputError, printable
from elmo_tf.files import json_file

_PACKAGES = ("tensorflow", "keras", "numpy", "apache-beam")


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Adds the command of this file."""
    help_text = (
        "print versions, the CPU, and the engine, precision and models that elmo-tf finds; TensorFlow is not imported "
        "unless --devices is given"
    )
    info = add_command(commands, "info", _info, help_text, needs_tensorflow=False)
    info.add_argument("--devices", action="store_true", help="import TensorFlow and list the GPUs that it sees")
    info.add_argument("--json", action="store_true", help="print one line of JSON")


def _info(arguments: argparse.Namespace) -> None:
    described = _described(arguments.devices)
    if arguments.json:
        print(json_file.dumps(described, ensure_ascii=False))
    else:
        print(*map(printable, table(_rows(described))), sep="\n")


def _described(devices: bool) -> dict[str, Any]:
    gpus = _gpus() if devices else None
    train_precision, reason = precision.automatic(on_gpus=devices)
    cpu = {"name": precision.cpu_name(), "cores": precision.num_cores(), "products": precision.cpu_products()}
    return {
        "elmo_tf": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": {package: extras.version(package) for package in _PACKAGES},
        "blas": _blas(),
        "cpu": cpu,
        "gpus": gpus,
        "english": _or_problem(_english),
        "training": {"precision": train_precision, "reason": reason},
        "extras": extras.installed(),
        "models": _or_problem(_models),
    }


def _gpus() -> list[str]:
    """Returns the names of the GPUs that TensorFlow sees."""
    quiet.load_tensorflow(on_gpu=True)
    import tensorflow as tf

    from elmo_tf.training import devices

    devices.warn_of_unused_gpus()
    details = map(tf.config.experimental.get_device_details, tf.config.list_physical_devices("GPU"))
    return [gpu.get("device_name", "unknown") for gpu in details]


def _blas() -> list[dict[str, Any]]:
    """Returns what computes NumPy's matrix products; nothing if threadpoolctl does not know it."""
    from elmo_tf.engines import threads

    names = {"internal_api": "name", "version": "version", "architecture": "architecture", "num_threads": "threads"}
    return [{name: library.get(key) for key, name in names.items()} for library in threads.blas().info()]


def _english() -> dict[str, Any]:
    from elmo_tf import engines, sources

    source = sources.find("english")
    return {"engine": engines.Engines(source).name, "precision": source.precision}


def _models() -> dict[str, int]:
    """Returns the bytes of each named model's files on this machine."""
    from elmo_tf.published import models

    local = [model for model in models.MODELS if model.is_local]
    return {model.name: sum(path.stat().st_size for path in model.paths) for model in local}


def _or_problem(find: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return find()
    except InputError as error:
        return {"problem": str(error)}


def _rows(described: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns the same as rows of a table."""
    cpu, english, training, models = (described[key] for key in ("cpu", "english", "training", "models"))
    missing = [name for name, is_there in described["extras"].items() if not is_there]
    gpus = "not looked for; use --devices" if described["gpus"] is None else ", ".join(described["gpus"]) or "none"
    sizes = [f"{name} {size / 1e6:.1f} MB" for name, size in models.items() if name != "problem"]
    blas = ["{name} {version}, {architecture}, threads: {threads}".format(**library) for library in described["blas"]]
    return [
        ("elmo_tf", described["elmo_tf"]),
        ("Python", described["python"]),
        ("system", described["system"]),
        *((package, version or "not installed") for package, version in described["packages"].items()),
        ("NumPy's BLAS", "; ".join(blas) or "unknown"),
        ("CPU", f"{cpu['name']}; {with_count(cpu['cores'], 'core')}; {', '.join(cpu['products']) or 'plain'}"),
        ("GPUs", gpus),
        ("english", english.get("problem") or f"engine {english['engine']}, {english['precision']}"),
        ("training", f"{training['precision']} if train.precision is auto: {training['reason']}"),
        ("extras", ", ".join(name for name in described["extras"] if name not in missing) or "none"),
        ("not installed", ", ".join(missing) or "none"),
        ("models", models.get("problem") or ", ".join(sizes)),
    ]
