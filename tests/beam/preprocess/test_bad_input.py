"""Wrong arguments and files of `elmo-tf preprocess`: an error that says so, and nothing left behind."""

import gzip
import os

import pytest

from elmo_tf.errors import InputError
from tests.beam.common import contents

BLANK = {"a.txt": b"\n \r\n", "b.gz": gzip.compress(b"")}
TEXT = {"a.txt": b"a b b\nc\n"}


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        (BLANK, ["--heldout={new}/heldout", "--shards=3"], "input: expected text, found no words"),
        (TEXT, ["--vocab={words}"], r"/.*vocab\.txt.*line 5: expected each word once, found b'a' of line 4"),
        (TEXT, ["--min-count=3"], "min_count: expected at most 2, .* found 3"),
        (TEXT, ["--heldout={new}", "--heldout-fraction=1e-9"], "heldout_fraction: .* found none of 2 sentences held"),
        (TEXT, ["--heldout={new}", "--heldout-fraction=0.999999"], "heldout_fraction: .* of 2 sentences left"),
        (TEXT, ["--runner=PortableRunner"], "job_endpoint: expected the address of a job service, found none"),
        (TEXT, ["--heldout={new}/../output"], "heldout: expected a folder that neither contains the output nor is"),
        (TEXT, ["--heldout={new}/../output/heldout"], "heldout: expected a folder that neither contains the output"),
        (TEXT, ["--heldout={new}/.."], "/.*: expected a folder that does not exist yet, found one$"),
    ],
)
def test_what_cannot_be_used_is_named_and_nothing_is_left(corpus, process, tmp_path, files, options, message):
    words = tmp_path / "vocab.txt"
    words.write_bytes(b"<S>\n</S>\n<UNK>\na\na\n")
    with pytest.raises(InputError, match=f"^{message}"):
        process(corpus(**files), *(option.format(new=tmp_path / "new", words=words) for option in options))
    assert sorted(os.listdir(tmp_path)) == ["corpus", "vocab.txt"]


def test_an_existing_output_stays_as_it_is(corpus, process, tmp_path):
    folder = process(corpus(b"a b\n"))
    before = contents(folder)
    with pytest.raises(InputError, match=r"/output: .*, found a finished one; delete it to run the job again$"):
        process(corpus(b"c\n"))
    with pytest.raises(InputError, match=r"/output: expected a folder that does not exist yet"):
        process(corpus(b"c\n"), f"--heldout={folder}", output="second")
    assert contents(folder) == before
    assert sorted(os.listdir(tmp_path)) == ["corpus", "output"]
