"""Runners on other machines: what is refused, who answers, and the end of a job on Flink."""

import http.server
import json
import os
import signal
import threading
import time
from unittest import mock

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions
from apache_beam.runners.runner import PipelineState

from elmo_tf.beam import flink_cluster, remote, runners
from elmo_tf.cli import jobs
from elmo_tf.errors import InputError


class FakeFlink(http.server.BaseHTTPRequestHandler):
    """Flink's REST interface; a job ends at the second request to cancel it."""

    jobs: list[dict]
    requests: list[str]  # paths, in the order of the requests
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
    return runners.parse(options)


def connect(*options: str) -> None:
    with runners.configured_pipeline(parsed(*options), ""):
        pass


UBER = ["--runner=FlinkRunner", "--flink_submit_uber_jar"]
JAVA = "Beam would start its Java job server, .*"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("DirectRunner", "runner: DirectRunner starts Prism, .* listens on all addresses; use FnApiRunner"),
        ("direct", "runner: DirectRunner starts Prism"),
        ("SwitchingDirectRunner", "runner: SwitchingDirectRunner starts Prism"),
        ("apache_beam.runners.portability.prism_runner.PrismRunner", "runner: PrismRunner starts Prism"),
        ("KafkaStreamsRunner", "runner: KafkaStreamsRunner starts a Java program"),
        ("FlinkRunner --flink_master=a:1", f"runner: {JAVA}; add --flink_submit_uber"),
        ("flink --flink_submit_uber_jar", f"flink_master: {JAVA}; give the host:port"),
        ("SparkRunner", f"runner: {JAVA}; add --spark_submit_uber_jar"),
        ("PortableRunner", "job_endpoint: give the address of a job service"),
    ],
)
def test_a_runner_that_would_listen_beyond_this_machine_is_refused_with_what_to_use(options, message):
    with pytest.raises(InputError, match=f"^{message}"):
        parsed(*f"--runner={options}".split())


@pytest.mark.parametrize("name", ["FnApiRunner", "BundleBasedDirectRunner", "bundlebaseddirect"])
def test_local_runners_take_no_unknown_option(name):
    assert runners.is_local(parsed(f"--runner={name}"))
    with pytest.raises(InputError, match=r"^beam: .*unrecognized arguments: --direct_num_worker=2"):
        parsed(f"--runner={name}", "--direct_num_worker=2")


def test_other_runners_are_taken_as_beam_has_them():
    for options in ([*UBER, "--flink_master=a:1"], ["--runner=DataflowRunner"], ["--runner=my.own.Runner"]):
        assert not runners.is_local(parsed(*options, "--an_option_of_java=1"))
    with pytest.raises(InputError, match=r"^runner: Unexpected pipeline runner: NoRunner"):
        connect("--runner=NoRunner")


def test_an_address_without_a_cluster_is_refused(flink, monkeypatch):
    monkeypatch.setattr(FakeFlink, "do_GET", lambda self: self._answer([]))
    for address, problem in (("127.0.0.1:1", "Connection refused"), (flink, "the server there is not Flink")):
        with pytest.raises(InputError, match=f"^flink_master: expected .*, found {problem}: http://{address}$"):
            connect(*UBER, f"--flink_master={address}")


def interrupted(options: PipelineOptions, monkeypatch, result: object = None) -> str:

    def run(self):
        if result:
            return result
        raise KeyboardInterrupt

    monkeypatch.setattr(beam.Pipeline, "run", run)
    with pytest.raises(KeyboardInterrupt) as caught:
        remote.execute(beam.Pipeline(options=options))
    return str(caught.value)


def test_an_interrupt_cancels_a_job_of_this_name_and_says_whether_flink_has_confirmed_it(flink, monkeypatch):
    options = parsed(*UBER, f"--flink_master={flink}")
    remote.name_job(options)
    name = options.view_as(GoogleCloudOptions).job_name
    # The job was still being submitted.
    threading.Timer(0.2, FakeFlink.jobs.append, [{"jid": "d4", "name": name, "state": "RUNNING"}]).start()
    assert interrupted(options, monkeypatch) == "interrupted; the remote job is cancelled"
    assert [job["state"] for job in FakeFlink.jobs] == ["RUNNING", "RUNNING", "FINISHED", "CANCELED"]
    assert flink_cluster.cancel(f"http://{flink}", "never submitted", 5)
    monkeypatch.setattr(remote, "_CANCEL_SECONDS", 0.2)
    options = parsed(*UBER, "--flink_master=127.0.0.1:1")
    assert "could not be cancelled and may still be running" in interrupted(options, monkeypatch)


def test_a_job_that_cannot_be_submitted_is_one_line_and_leaves_nothing(flink, corpus, tmp_path):
    given = ["--input", *corpus(b"a b\n"), "--output", str(tmp_path / "out"), f"--flink_master={flink}"]
    workers = ["--environment_type=EXTERNAL", "--environment_config=localhost:1", "--flink_job_server_jar=/none.jar"]
    with pytest.raises(ChildProcessError, match=r'^the remote job failed: Unable to parse jar URL "/none.jar"'):
        jobs.run("preprocess", [*given, *UBER, *workers])
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]


def test_another_runner_is_taken_at_its_word(monkeypatch):
    result = mock.Mock(state=PipelineState.RUNNING)
    result.wait_until_finish.side_effect = KeyboardInterrupt
    result.cancel.side_effect = lambda: setattr(result, "state", PipelineState.CANCELLED)
    options = parsed("--runner=PortableRunner", "--job_endpoint=localhost:1")
    assert interrupted(options, monkeypatch, result) == "interrupted; the runner says that the job is cancelled"


def test_every_job_has_a_name_of_its_own_after_the_users():
    names = set()
    for _ in range(2):
        options = PipelineOptions(["--job_name=news", "--runner=PortableRunner"])
        remote.name_job(options)
        names.add(options.view_as(GoogleCloudOptions).job_name)
    assert len(names) == 2
    assert {name[:-12] for name in names} == {"news-"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("given", [[], ["--runner=PortableRunner", "--job_endpoint=localhost:1"]])
def test_a_signal_that_ends_the_command_is_an_interrupt_while_it_has_a_job(number, given):
    options = parsed(*given)
    before = signal.signal(number, signal.SIG_DFL)  # under `nohup`, SIGHUP is ignored
    try:
        with pytest.raises(KeyboardInterrupt), runners.configured_pipeline(options, ""):
            os.kill(os.getpid(), number)
            time.sleep(5)
        assert signal.getsignal(number) == signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN)
        with runners.configured_pipeline(options, ""):
            os.kill(os.getpid(), number)  # stays ignored
    finally:
        signal.signal(number, before)


ERRORS = {
    "Traceback ...\nModuleNotFoundError: No module named 'elmo_tf.beam'\n": (
        "the workers cannot import elmo_tf.beam; install the same version of elmo_tf there"
    ),
    "java.lang.RuntimeException: outer\n\tat a.B\nCaused by: org.apache.flink.NoSlotException: too few\n\tat a.C": (
        "the remote job failed: org.apache.flink.NoSlotException: too few; check the runner's web interface"
    ),
    "it\n\nfailed\n": "the remote job failed: failed; check the runner's web interface",
    "": "the remote job failed: RuntimeError(''); check the runner's web interface",
}


@pytest.mark.parametrize("text", ERRORS)
def test_the_error_of_a_remote_job_is_one_line(text):
    assert remote.failure_reason(RuntimeError(text)) == ERRORS[text]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], None),
        (["--direct_num_workers=3"], None),
        (["--direct_num_workers=3", "--direct_running_mode=multi_processing"], 3),
        (["--direct_num_workers=0", "--direct_running_mode=multi_processing"], 0),
        ([*UBER, "--flink_master=a:1"], 1),
        (["--runner=PortableRunner", "--job_endpoint=a:1", "--sdk_worker_parallelism=4"], 4),
    ],
)
def test_the_number_of_processes_of_a_machine_follows_from_the_options(options, expected):
    assert runners.processes_per_machine(parsed(*options)) == expected
