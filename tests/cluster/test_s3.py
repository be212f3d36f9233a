"""Both jobs with text, model and output in an S3 store: the bytes of a local run, kills, one line of refusal."""

import contextlib
import os
import signal

import pytest

from tests.beam.common import contents
from tests.cluster.commands import done, finished, refused, start, wait_for
from tests.cluster.object_store import BUCKET, ObjectStore

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="session")
def far_text(store: ObjectStore, text) -> str:
    return store.put("text", text.parent)


@pytest.fixture(scope="session")
def far_model(store: ObjectStore, savedmodel) -> str:
    store.put("models/micro/3", savedmodel.path)
    return f"s3://{BUCKET}/models/micro"


def test_preprocess_writes_the_bytes_of_a_local_run(store, cluster, text, far_text, tmp_path):
    command = ["preprocess", "--shards=5", "--min-count=2", "--heldout-fraction=0.0003"]
    done(*command, f"--input={text}", f"--output={tmp_path / 'train'}", f"--heldout={tmp_path / 'heldout'}")
    far = [f"--output=s3://{BUCKET}/train", f"--heldout=s3://{BUCKET}/heldout"]
    done(*command, f"--input={far_text}", *far, *cluster.options)
    for split in ("train", "heldout"):
        assert store.contents(split) == contents(tmp_path / split)


@pytest.mark.parametrize(
    ("where", "kind"), [("flink", ["--format=tfrecord", "--shards=4"]), ("here", ["--format=npy", "--pool=mean"])]
)
def test_embed_writes_the_bytes_of_a_local_run_and_fetches_the_model_once_a_process(
    store: ObjectStore, savedmodel, sentences, far_model, tmp_path, request, where, kind
):
    two = ["--direct_num_workers=2", "--direct_running_mode=multi_processing", "--processes-per-machine=2"]
    options = request.getfixturevalue("cluster").options if where == "flink" else two
    command, name = ["embed", *kind], f"{where}/vectors{kind[0]}"
    local = tmp_path / "local"
    done(*command, f"--model={savedmodel.path}", f"--input={sentences}", f"--output={local}")
    before = store.num_gets("models/micro/3/saved_model.pb")
    far = [f"--model={far_model}", f"--input={store.put('sentences', sentences.parent)}"]
    done(*command, *far, f"--output=s3://{BUCKET}/{name}", *options)
    assert store.contents(name) == contents(local)
    # The command, and two workers if both had something to do.
    assert 2 <= store.num_gets("models/micro/3/saved_model.pb") - before <= 3


def test_a_killed_command_is_completed_and_two_at_once_write_the_same(store: ObjectStore, large, large_records):
    command = ["preprocess", f"--input={store.put('large', large.parent)}", "--shards=12"]
    output = f"--output=s3://{BUCKET}/resumed"
    first = start(*command, output, "--direct_num_workers=2", "--direct_running_mode=multi_processing")
    wait_for(lambda: any(name.startswith("shard-") for name in store.names("resumed")), first)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert "_SUCCESS" not in store.contents("resumed")
    both = [start(*command, output) for _ in range(2)]
    ends = [(finished(process).splitlines()[-1], process.returncode) for process in both]
    assert any(code == 0 for _, code in ends), ends
    assert all(code == 0 or "is finished; delete it" in line for line, code in ends), ends
    assert store.contents("resumed") == large_records


ANSWERS = "cannot access the store ("
# Input, output and the error.
REFUSED = {
    "no such bucket": ("TEXT", "s3://none/a", f"s3://none/a: {ANSWERS}The specified bucket"),
    "no such text": ("s3://bucket/none", "OUT", "s3://bucket/none: no such file"),
    "a stranger": ("TEXT", "OUT", f"{ANSWERS}The AWS Access Key Id you provided"),
    "a reader": ("TEXT", "s3://bucket/denied", "cannot write s3://bucket/denied/plan.json"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_store_that_refuses_is_one_line_and_leaves_nothing(store: ObjectStore, far_text, tmp_path, case):
    paths = {"TEXT": far_text, "OUT": str(tmp_path / "out")}
    given, output, expected = (paths.get(word, word) for word in REFUSED[case])
    variables = store.reader() if case == "a reader" else {}
    with store.checking_keys() if case in ("a stranger", "a reader") else contextlib.nullcontext():
        line = refused("preprocess", f"--input={given}", f"--output={output}", **variables)
    assert expected in line
    assert list(tmp_path.iterdir()) == []
    assert store.contents("denied") == {}


def test_without_credentials_a_model_is_refused_at_once(store: ObjectStore, far_model, sentences, tmp_path):
    without = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SHARED_CREDENTIALS_FILE": "/none"}
    given = [f"--model={far_model}", f"--input={sentences}", f"--output={tmp_path / 'vectors'}"]
    line = refused("embed", *given, **without)
    assert line.startswith(f"{far_model}: {ANSWERS}Unable to locate credentials")
