"""The command `info`."""

import importlib.metadata
import json
import os
import pathlib
import platform

import pytest
import tensorflow as tf

from elmo_tf import __version__, cli, precision
from elmo_tf.published import models
from tests.helpers import ROOT, run_python

CODE = """
import sys
from elmo_tf import cli
status = cli.main(["info", "--json"])
print(status, [name for name in sys.modules if name.partition(".")[0] in ("tensorflow", "keras", "apache_beam")])
"""


def info(capsys, *options: str) -> dict:
    assert cli.main(["info", "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_it_prints_versions_and_what_would_be_chosen_without_importing_tensorflow():
    line, status = run_python("-c", CODE).stdout.splitlines()
    assert status == "0 []"
    found = json.loads(line)
    packages = ("tensorflow", "keras", "numpy", "apache-beam")
    assert found["packages"] == {name: importlib.metadata.version(name) for name in packages}
    assert (found["elmo_tf"], found["python"]) == (__version__, platform.python_version())
    assert found["blas"][0].keys() == {"name", "version", "architecture", "threads"}
    assert found["english"] == {"engine": "numpy", "precision": "float32"}
    assert found["gpus"] is None
    assert found["extras"].keys() == {"beam", "text", "spacy", "tasks", "hub"} and found["extras"]["beam"]
    assert found["models"]["english"] > 13_292_897


@pytest.mark.parametrize(
    ("flags", "products", "train_precision"),
    [
        ("avx avx2", ["AVX2"], "float32"),
        ("avx2 avx512f avx512_vnni", ["AVX2", "AVX-512"], "float32"),
        ("avx2 avx512f amx_bf16", ["AVX2", "AVX-512", "bfloat16"], "bfloat16"),
        ("asimd bf16", ["NEON", "bfloat16"], "bfloat16"),
    ],
)
def test_what_the_cpu_multiplies_decides_the_precision_of_training(
    bfloat16_cpu, capsys, flags, products, train_precision
):
    bfloat16_cpu.write_text(f"processor : 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: {flags}\n")
    found = info(capsys)
    assert (found["cpu"]["name"], found["cpu"]["products"]) == ("Some CPU @ 2 GHz", products)
    assert found["training"]["precision"] == train_precision


def test_cores_are_those_of_the_machine_where_the_system_does_not_limit_a_process(capsys, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)  # as on macOS
    assert info(capsys)["cpu"]["cores"] == os.cpu_count()


def test_gpus_are_listed_if_asked_for(capsys, monkeypatch):
    gpu = {"device_name": "Some GPU", "compute_capability": (9, 0)}
    for name in ("list_physical_devices", "get_visible_devices"):
        monkeypatch.setattr(tf.config, name, lambda kind: [gpu])
    monkeypatch.setattr(tf.config.experimental, "get_device_details", dict)
    found = info(capsys, "--devices")
    assert found["gpus"] == ["Some GPU"]
    assert found["training"] == {"precision": "bfloat16", "reason": "all GPUs have bfloat16 products"}


def test_the_table_names_a_missing_package_and_cached_models(capsys, monkeypatch, home):
    def version(package: str) -> str:
        if package in ("apache-beam", "seqeval"):
            raise importlib.metadata.PackageNotFoundError(package)
        return "1.2"

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr(precision, "_CPU", home / "none")
    for path in models.find("small").paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"0" * 1_250_000)
    assert cli.main(["info"]) == 0
    rows = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    rows = {name: text.strip() for name, text in rows.items()}
    assert (rows["keras"], rows["apache-beam"], rows["GPUs"]) == (
        "1.2",
        "not installed",
        "not looked for; use --devices",
    )
    assert (rows["extras"], rows["not installed"]) == ("text, spacy, hub", "beam, tasks")
    assert rows["CPU"].startswith("unknown; ") and rows["CPU"].endswith("; plain")
    assert rows["english"] == "engine numpy, float32"
    assert rows["training"] == "float32 if train.precision is auto: the CPU has no bfloat16 products"
    assert rows["models"].endswith(", small 2.5 MB")


def test_without_a_home_for_models_the_rest_is_printed(capsys, monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME", models.HOME_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pathlib.Path, "expanduser", lambda path: (_ for _ in ()).throw(RuntimeError))
    found = info(capsys)
    assert found["models"]["problem"].startswith("ELMO_TF_HOME: not set")
    assert found["english"]["engine"] == "numpy"


def test_the_form_for_bugs_asks_for_it():
    assert "elmo-tf info" in (ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml").read_text()
