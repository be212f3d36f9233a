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
        (BLANK, ["--heldout={new}/heldout", "--shards=3"], "input: it has no words"),
        (TEXT, ["--vocab={words}"], r"/.*vocab\.txt.*line 5: the word b'a' is already in line 4"),
        (TEXT, ["--min-count=3"], "min_count: expected at most 2, .* found 3"),
        (TEXT, ["--heldout={new}", "--heldout-fraction=1e-9"], "heldout_fraction: .* found none of 2 sentences held"),
        (TEXT, ["--heldout={new}", "--heldout-fraction=0.999999"], "heldout_fraction: .* of 2 sentences left"),
        (TEXT, ["--runner=PortableRunner"], "job_endpoint: give the address of a job service"),
        (TEXT, ["--heldout={new}/../output"], "heldout: expected a folder that neither contains the output nor is"),
        (TEXT, ["--heldout={new}/../output/heldout"], "heldout: expected a folder that neither contains the output"),
        (TEXT, ["--heldout={new}/.."], "/.*: already exists, and is not an unfinished output"),
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
    with pytest.raises(InputError, match=r"/output: is finished; delete it to run the job again$"):
        process(corpus(b"c\n"))
    with pytest.raises(InputError, match=r"/output: is finished"):
        process(corpus(b"c\n"), f"--heldout={folder}", output="second")
    assert contents(folder) == before
    assert sorted(os.listdir(tmp_path)) == ["corpus", "output"]


def test_a_link_to_nothing_is_not_followed(corpus, process, tmp_path):
    (tmp_path / "output").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"/output: a link to a path that does not exist; it is not followed$"):
        process(corpus(b"a b\n"))
    assert not (tmp_path / "elsewhere").exists()


def test_an_unfinished_folder_of_an_earlier_version_is_refused(corpus, process, tmp_path):
    (tmp_path / "output" / "_unfinished").mkdir(parents=True)
    (tmp_path / "output" / "_unfinished" / "plan.json").write_text('{"run": "x/../../escaped"}')
    with pytest.raises(InputError, match=r"/output: already exists, and is not an unfinished output \(it has no plan"):
        process(corpus(b"a b\n"))
    assert os.listdir(tmp_path / "output") == ["_unfinished"]


def test_what_applied_to_irregular_text_is_separated_in_the_error(corpus, process):
    with pytest.raises(InputError, match=r"irregular: invalid utf8 lines: 1, dropped.*; blank lines: 1, dropped$"):
        process(corpus(b"\xff\n\n"))
