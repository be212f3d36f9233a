"""Every wrong argument or file of `elmo-tf preprocess`: an error that says so, and nothing left behind."""

import gzip
import os

import pytest

from elmo_tf.errors import InputError
from tests.pipelines.common import contents

# Files, options, and what is said of them.
CORPORA = {
    "strict, not UTF-8": (
        {"a.txt": b"fine\n", "b.txt": b"one\ntwo \xff\n\xfe\n"},
        ["--strict"],
        r"b\.txt: expected regular text, found bytes that are not UTF-8 on line 2$",
    ),
    "empty": ({"a.txt": b""}, [], r"input: expected text, found no words"),
    "blank": ({"a.txt": b"\n \r\n", "b.gz": gzip.compress(b"")}, [], r"input: expected text, found no words"),
}


def leftovers(tmp_path) -> list[str]:
    return sorted(set(os.listdir(tmp_path)) - {"corpus", "vocab.txt"})


@pytest.mark.parametrize("case", CORPORA)
def test_an_unusable_file_is_named(corpus, process, tmp_path, case):
    files, options, message = CORPORA[case]
    (tmp_path / "vocab.txt").write_bytes(b"<S>\n</S>\n<UNK>\nfine\n")
    options = [*options, f"--vocab={tmp_path / 'vocab.txt'}", f"--heldout={tmp_path}/new/heldout"]
    with pytest.raises(InputError, match=message):
        process(corpus(**files), "--shards=3", *options)
    assert leftovers(tmp_path) == []


def test_an_unusable_vocabulary_is_refused(corpus, process, tmp_path):
    (tmp_path / "vocab.txt").write_bytes(b"<S>\n</S>\n<UNK>\na\na\n")
    with pytest.raises(InputError, match=r"^/.*vocab\.txt.*line 5: expected each word once, found b'a' of line 4"):
        process(corpus(b"a b\n"), f"--vocab={tmp_path / 'vocab.txt'}")
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--min-count=3"], "min_count: expected at most 2, .* found 3"),
        (["--heldout={new}", "--heldout-fraction=1e-9"], "heldout_fraction: .* found none of 2 sentences held out"),
        (["--heldout={new}", "--heldout-fraction=0.999999"], "heldout_fraction: .* found none of 2 sentences left"),
        (["--runner=PortableRunner"], "job_endpoint: expected the address of a job service, found none"),
        (["--heldout={new}/../output"], "heldout: expected a folder that neither contains the output nor is inside it"),
        (["--heldout={new}/../output/heldout"], "heldout: expected a folder that neither contains the output"),
        (["--heldout={new}/.."], "/.*: expected a folder that does not exist yet, found one$"),
    ],
)
def test_an_unusable_option_is_refused(corpus, process, tmp_path, options, message):
    with pytest.raises(InputError, match=f"^{message}"):
        process(corpus(b"a b b\nc\n"), *(option.format(new=tmp_path / "new") for option in options))
    assert leftovers(tmp_path) == []


def test_an_existing_output_stays_as_it_is(corpus, process, tmp_path):
    folder = process(corpus(b"a b\n"))
    before = contents(folder)
    with pytest.raises(InputError, match=r"/output: expected a folder that does not exist yet, found a finished one$"):
        process(corpus(b"c\n"))
    with pytest.raises(InputError, match=r"/output: expected a folder that does not exist yet"):
        process(corpus(b"c\n"), f"--heldout={folder}", output="second")
    assert contents(folder) == before
    assert leftovers(tmp_path) == ["output"]
