"""The job service of a portable runner: who answers, which options it knows, and the end of a job on Flink."""

import errno
import http.server
import json
import os
import pathlib
import signal
import sys
import threading
import time

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions
from apache_beam.portability.api import beam_job_api_pb2
from apache_beam.runners.portability import local_job_service
from apache_beam.runners.runner import PipelineState

from elmo_tf.beam.cluster import flink_cluster, job_service
from elmo_tf.beam.running import runner_options
from elmo_tf.beam.text import filesystems
from elmo_tf.errors import InputError
from tests.helpers import run_python


@pytest.fixture
def service(monkeypatch):
    """Beam's local job service, which also knows one option of Flink's; its address."""

    def describe(self, request, context=None):
        known = beam_job_api_pb2.PipelineOptionDescriptor(name="checkpointing_interval")
        return beam_job_api_pb2.DescribePipelineOptionsResponse(options=[known])

    monkeypatch.setattr(local_job_service.LocalJobServicer, "DescribePipelineOptions", describe)
    servicer = local_job_service.LocalJobServicer()
    yield f"localhost:{servicer.start_grpc_server()}"
    servicer.stop()


class FakeFlink(http.server.BaseHTTPRequestHandler):
    """Flink's REST interface; a job ends at the second request to cancel it."""

    jobs: list[dict]
    requests: list[str]  # their paths
    version = "1.19.3"

    def _answer(self, content: object) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def parse_request(self) -> bool:
        is_whole = super().parse_request()
        self.requests.append(self.path)
        return is_whole

    def do_GET(self) -> None:
        self._answer({"flink-version": self.version} if self.path == "/config" else {"jobs": self.jobs})

    def do_PATCH(self) -> None:
        identifier = self.path.removeprefix("/jobs/").removesuffix("?mode=cancel")
        for job in self.jobs:
            if job["jid"] == identifier:
                job["state"] = "CANCELED" if job["state"] == "CANCELLING" else "CANCELLING"
        self._answer({})

    def log_message(self, *arguments) -> None:
        pass


@pytest.fixture
def flink(monkeypatch):
    """The address of a cluster with two jobs that run."""
    jobs = [("a1", "mine", "RUNNING"), ("b2", "another's", "RUNNING"), ("c3", "mine", "FINISHED")]
    FakeFlink.jobs = [dict(zip(("jid", "name", "state"), job, strict=True)) for job in jobs]
    FakeFlink.requests = []
    monkeypatch.setattr(flink_cluster, "_POLL_SECONDS", 0.05)
    server = http.server.HTTPServer(("127.0.0.1", 0), FakeFlink)
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()


def parsed(*options: str) -> PipelineOptions:
    return runner_options.parse(options)[0]


def connect(*options: str) -> None:
    with job_service.connected(*runner_options.parse(options)):
        pass


def test_options_of_the_job_service_pass_through(service):
    where = ["--runner=PortableRunner", f"--job_endpoint={service}"]
    assert runner_options.parse([*where, "--checkpointing_interval=1000"])[1] == ["--checkpointing_interval=1000"]
    connect(*where, "--checkpointing_interval=1000")
    connect(*where, "--checkpointing_interval", "1000")
    with pytest.raises(InputError, match=r"^runner: expected options that .*, found unknown ones: --chekpointing=1$"):
        connect(*where, "--chekpointing=1")


def test_an_address_without_a_job_service_is_refused():
    with pytest.raises(InputError, match=r"^job_endpoint: expected the address of a job service that answers"):
        connect("--runner=PortableRunner", "--job_endpoint=localhost:1")


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.19.3", r"^flink_job_server_jar: expected a jar"),  # the next check
        ("1.20.1", r"^flink_version: expected 1\.20, the version of the cluster at http://127.*, found 1\.19$"),
        ("1.190", r"^flink_version: expected 1\.190, "),
    ],
)
def test_the_version_of_the_cluster_is_checked(flink, monkeypatch, version, expected):
    monkeypatch.setattr(FakeFlink, "version", version)
    options = ["--runner=FlinkRunner", f"--flink_master={flink}", "--flink_version=1.19"]
    with pytest.raises(InputError, match=expected):
        connect(*options, "--flink_job_server_jar=none")


def test_an_address_without_a_cluster_is_refused(service):
    for address, found in (("127.0.0.1:1", "Connection refused"), (service, "something else answers")):
        with pytest.raises(InputError, match=f"^flink_master: expected .*, found {found}: http://{address}$"):
            connect("--runner=FlinkRunner", f"--flink_master={address}")


def test_only_jobs_with_the_name_are_cancelled_on_flink_even_if_they_arrive_later(flink):
    assert flink_cluster.cancel(f"http://{flink}", "mine", 5)
    assert [job["state"] for job in FakeFlink.jobs] == ["CANCELED", "RUNNING", "FINISHED"]
    assert not flink_cluster.cancel("http://127.0.0.1:1", "mine", 0.1)
    late = {"jid": "d4", "name": "late", "state": "RUNNING"}
    threading.Timer(0.2, FakeFlink.jobs.append, [late]).start()
    assert flink_cluster.cancel(f"http://{flink}", "late", 5, appears=2)
    assert late["state"] == "CANCELED"
    assert flink_cluster.cancel(f"http://{flink}", "never", 5)


class Result:
    """Of a job server that reports every job as cancelled."""

    state = PipelineState.RUNNING

    def cancel(self) -> None:
        self.state = PipelineState.CANCELLED


def test_a_job_counts_as_cancelled_when_flink_says_so(flink, monkeypatch, tmp_path):
    """Beam's job server reports it as cancelled while it still runs."""
    note = tmp_path / "job.json"
    note.touch()
    assert job_service.cancel_job(Result(), f"http://{flink}", "mine", str(note)) == "the remote job is cancelled"
    assert FakeFlink.jobs[0]["state"] == "CANCELED"
    assert not note.exists()
    monkeypatch.setattr(job_service, "_CANCEL_SECONDS", 0.2)
    assert "could not be cancelled" in job_service.cancel_job(Result(), "http://127.0.0.1:1", "mine", str(note))
    note.touch()
    found = job_service.cancel_job(Result(), None, "mine", str(note))
    assert found == "the job server says that the job is cancelled; see the runner's own page"
    assert note.exists()


def test_every_job_has_a_name_of_its_own_after_the_users(tmp_path):
    options, names = PipelineOptions(["--job_name=news", "--runner=PortableRunner"]), []
    for phase in ("count", "write"):
        job_service.begin_job(options, phase, str(tmp_path / "job.json"))
        names.append(options.view_as(GoogleCloudOptions).job_name)
    assert [name[:-12] for name in names] == ["news-phase-count-", "news-phase-write-"]
    assert json.loads((tmp_path / "job.json").read_text())["name"] == names[-1]


def test_the_job_that_a_killed_command_left_is_cancelled_where_it_runs(flink, tmp_path, monkeypatch):
    note = tmp_path / "job.json"
    options = parsed("--runner=FlinkRunner", f"--flink_master={flink}")
    job_service.begin_job(options, "count", str(note))
    name = options.view_as(GoogleCloudOptions).job_name
    assert json.loads(note.read_text()) == {"runner": "FlinkRunner", "address": f"http://{flink}", "name": name}
    FakeFlink.jobs.append({"jid": "d4", "name": name, "state": "RUNNING"})
    job_service.end_job(options, str(note))
    assert [job["state"] for job in FakeFlink.jobs] == ["RUNNING", "RUNNING", "FINISHED", "CANCELED"]
    assert not note.exists()
    job_service.begin_job(options, "write", str(note))
    monkeypatch.setattr(job_service, "_CANCEL_SECONDS", 0)
    expected = rf"^the job \S+ of http://{flink} may still be running; cancel it there, or once .* delete {note}$"
    with pytest.raises(ChildProcessError, match=expected):
        job_service.end_job(options, str(note))
    assert note.exists()


def test_a_note_with_another_address_than_the_options_have_sends_nothing_there(flink, tmp_path):
    """Somebody else may have written the note: it names a job on a cluster that the options do not."""
    note = tmp_path / "job.json"
    note.write_text(json.dumps({"runner": "FlinkRunner", "address": f"http://{flink}", "name": "theirs"}))
    before = [dict(job) for job in FakeFlink.jobs]
    for options in ([], ["--runner=FlinkRunner", "--flink_master=127.0.0.1:1"], ["--runner=FlinkRunner"]):
        with pytest.raises(ChildProcessError, match=rf"^the job theirs of http://{flink} may still"):
            job_service.end_job(parsed(*options), str(note))
    assert (FakeFlink.jobs, FakeFlink.requests) == (before, [])
    assert note.exists()


@pytest.mark.parametrize("content", [b'{"runner": "PortableRunner", "address": "", "name": "mine"}', b"{"])
def test_a_job_that_may_still_run_is_refused_with_what_to_do(tmp_path, content):
    note = tmp_path / "job.json"
    note.write_bytes(content)
    with pytest.raises(ChildProcessError, match=rf"may still be running; .*once it has ended, delete {note}"):
        job_service.end_job(PipelineOptions(["--runner=PortableRunner"]), str(note))
    assert note.exists()


@pytest.mark.parametrize(
    ("state", "is_kept"), [(PipelineState.FAILED, False), (PipelineState.DONE, False), (PipelineState.RUNNING, True)]
)
def test_the_note_of_a_job_is_kept_until_its_runner_reports_the_end(tmp_path, state, is_kept):
    note, result = tmp_path / "job.json", Result()
    note.touch()
    result.state = state
    job_service.forget_job(result, str(note))
    assert note.exists() == is_kept


def test_an_interrupt_while_a_job_is_submitted_comes_after(monkeypatch):
    before = signal.getsignal(signal.SIGINT)
    submitted = []
    with pytest.raises(KeyboardInterrupt), job_service.interrupts_later():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as Beam does
        submitted.append(True)
    assert submitted == [True]
    assert signal.getsignal(signal.SIGINT) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_command_is_an_interrupt_while_it_has_a_remote_job(number, service):
    options = parsed("--runner=PortableRunner", f"--job_endpoint={service}")
    before = signal.signal(number, signal.SIG_DFL)  # under `nohup`, SIGHUP is ignored
    try:
        with pytest.raises(KeyboardInterrupt), job_service.connected(options):
            os.kill(os.getpid(), number)
            time.sleep(5)
        assert signal.getsignal(number) == signal.SIG_DFL
        with runner_options.connected(parsed(), (), "", None):
            assert signal.getsignal(number) == signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN)
        with job_service.connected(options):
            os.kill(os.getpid(), number)  # stays ignored
    finally:
        signal.signal(number, before)


@pytest.mark.skipif(sys.platform != "linux", reason="needs prctl of Linux")
def test_the_job_server_ends_with_a_command_that_is_killed(tmp_path):
    program = (
        "import os, signal\nfrom elmo_tf.beam.cluster import java_server\n"
        f"with open({str(tmp_path / 'log')!r}, 'wb') as log:\n"
        "    print(java_server.start(['sleep', '60'], log).pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = run_python("-c", program, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    status = pathlib.Path(f"/proc/{int(done.stdout)}/status")
    for _ in range(100):
        if not status.exists() or "Z (zombie)" in status.read_text():
            return
        time.sleep(0.05)
    os.kill(int(done.stdout), signal.SIGKILL)
    pytest.fail("it is still running")


ERRORS = {
    "RuntimeError: Traceback ...\nModuleNotFoundError: No module named 'elmo_tf.beam'\n": (
        "workers lack elmo_tf, or its version that this command has: no module elmo_tf.beam"
    ),
    "RuntimeError: java.lang.RuntimeException: outer\n\tat a.B\nCaused by: org.apache.flink.NoSlotException: too few": (
        "the remote job failed: NoSlotException: too few; see the runner's own page"
    ),
    "RuntimeError: it\n\nfailed\n": "the remote job failed: failed; see the runner's own page",
}


@pytest.mark.parametrize("text", ERRORS)
def test_the_error_of_a_remote_job_is_one_line(text):
    assert str(job_service.error(text)) == ERRORS[text]


@pytest.mark.parametrize(("path", "named"), [((), "a file"), (("/tmp/a",), "'/tmp/a'")])
def test_an_error_of_the_operating_system_in_a_worker_is_one_line(path, named, tmp_path):
    def fail(element: int) -> None:
        raise OSError(errno.EIO, "Input/output error", *path)

    pipeline = runner_options.make_pipeline(parsed())
    _ = pipeline | beam.Create([1]) | beam.Map(fail)
    with pytest.raises(filesystems.ReadError, match=f"^cannot read or write {named}: Input/output error$"):
        runner_options.execute(pipeline, str(tmp_path / "job.json"))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], None),
        (["--direct_num_workers=3"], None),
        (["--direct_num_workers=3", "--direct_running_mode=multi_processing"], 3),
        (["--direct_num_workers=0", "--direct_running_mode=multi_processing"], 0),
        (["--runner=FlinkRunner"], 1),
        (["--runner=PortableRunner", "--sdk_worker_parallelism=4"], 4),
    ],
)
def test_the_number_of_processes_of_a_machine_follows_from_the_options(options, expected):
    assert runner_options.processes_per_machine(parsed(*options)) == expected
