"""The notebooks of `examples/`: as they are stored, and run."""

import base64
import re

import pytest

from tests.helpers import ROOT

pytest.importorskip("nbclient", reason="the notebooks are run by nbclient, of the extra [dev]")
pytest.importorskip("ipykernel", reason="the notebooks run in ipykernel, of the extra [dev]")
pytest.importorskip("pandas", reason="a notebook reads a table with pandas, of the extra [dev]")

import nbformat
import psutil

from tests.examples import notebooks

LARGEST = 300_000  # bytes of a notebook, pictures included
FOLDER_OF_A_MACHINE = re.compile(r"(?<![\w.])/(home|root|tmp|var|usr|opt|mnt|work|Users|private|content)/")
LOOPBACK = ("127.0.0.1", "::1", "localhost")

every_notebook = pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)


def test_there_are_three():
    names = ["classify_with_keras", "first_vectors", "your_own_model"]
    assert [path.stem for path in notebooks.NOTEBOOKS] == names


@every_notebook
def test_a_notebook_is_stored_with_its_outputs_and_without_the_machine_that_made_them(path):
    notebook = notebooks.read(path)
    nbformat.validate(notebook)
    assert path.stat().st_size < LARGEST
    cells = notebooks.code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert {output.output_type for output in outputs} <= {"stream", "display_data", "execute_result"}
    assert {output.name for output in outputs if output.output_type == "stream"} <= {"stdout"}
    pictures = [output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    assert pictures and all(base64.b64decode(picture).startswith(b"\x89PNG") for picture in pictures)
    texts = [output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in outputs]
    texts += [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    for text in [*texts, *(cell.source for cell in notebook.cells)]:
        assert not FOLDER_OF_A_MACHINE.search(text), text
    for text in texts:
        assert not re.search(r"WARNING|INFO|ERROR|\x1b", text), text
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert all(not cell.metadata for cell in notebook.cells)


@every_notebook
def test_the_links_of_a_notebook_lead_to_files(path):
    links = [link for cell in notebooks.read(path).cells for link in re.findall(r"\]\(([^)#]+)", cell.source)]
    assert links
    for link in links:
        assert (path.parent / link).exists(), link
    assert f"(examples/{path.name})" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.slow
@every_notebook
def test_a_notebook_runs_and_has_the_kinds_of_outputs_that_are_stored(path, tmp_path):
    processes, addresses = {}, set()

    def look(client) -> None:
        kernel = psutil.Process(client.km.provisioner.pid)
        for process in (kernel, *kernel.children(recursive=True)):
            processes[process.pid] = process
            listening = [each for each in process.net_connections("inet") if each.status == psutil.CONN_LISTEN]
            addresses.update((process.name(), each.laddr.ip) for each in listening)

    today = notebooks.executed(path, tmp_path, look)
    assert notebooks.kinds(today) == notebooks.kinds(notebooks.read(path))
    assert {address for _, address in addresses} <= set(LOOPBACK)
    _, left = psutil.wait_procs(processes.values(), timeout=60)  # TensorBoard ends a little after its notebook
    assert not left
    if "%tensorboard" in path.read_text("utf-8"):
        assert any(name.startswith("tensorboard") for name, _ in addresses)
