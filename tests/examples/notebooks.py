"""Runs the notebooks of `examples/`: `python -m tests.examples.notebooks [NAME]...` stores their outputs again."""

import os
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import nbformat
from nbclient import NotebookClient

from tests.helpers import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
Notebook = nbformat.NotebookNode


def read(path: pathlib.Path) -> Notebook:
    return nbformat.read(path, as_version=4)


def executed(path: pathlib.Path, folder: pathlib.Path, after_cell: Callable[[NotebookClient], Any]) -> Notebook:
    """Runs a notebook in an empty folder, with the tables that lie beside it; nothing is written elsewhere.

    Calls `after_cell` after each cell. Raises nbclient's `CellExecutionError` if a cell fails.
    """
    for table in path.parent.glob("*.csv"):
        shutil.copy(table, folder)
    kept = {name: str(folder) for name in ("TMPDIR", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR")}
    client = NotebookClient(read(path), timeout=600, record_timing=False, coalesce_streams=True)
    client.resources["metadata"] = {"path": str(folder)}
    client.on_cell_executed = lambda **_: after_cell(client)
    return cleaned(client.execute(env=os.environ | kept))


def cleaned(notebook: Notebook) -> Notebook:
    """Returns the notebook without what belongs to a run and its machine: logs, TensorBoard's frame, versions."""
    notebook.metadata.language_info = {"name": "python"}
    for cell in code_cells(notebook):
        cell.outputs = [output for output in cell.outputs if not _is_of_the_run(output)]
    return notebook


def code_cells(notebook: Notebook) -> list[Notebook]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def kinds(notebook: Notebook) -> dict[str, list[tuple[str, ...]]]:
    """Returns what kinds of outputs each cell has, by its id."""
    return {
        cell.id: [(output.output_type, *sorted(output.get("data", ()))) for output in cell.outputs]
        for cell in code_cells(notebook)
    }


def _is_of_the_run(output: Notebook) -> bool:
    return output.get("name") == "stderr" or "tensorboard-frame" in output.get("data", {}).get("text/html", "")


def main(names: list[str]) -> None:
    for path in NOTEBOOKS:
        if not names or path.stem in names:
            with tempfile.TemporaryDirectory() as folder:
                notebook = executed(path, pathlib.Path(folder), lambda client: None)
            nbformat.write(notebook, path)


if __name__ == "__main__":
    main(sys.argv[1:])
