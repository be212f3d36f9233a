"""JSON files: an error names the file, the key and the value."""

import json
import math
import re
from typing import Annotated, Literal

import msgspec
import pytest

from elmo_tf import errors
from elmo_tf.errors import InputError
from elmo_tf.files import json_file
from elmo_tf.files.json_file import Count
from tests.helpers import ROOT


class Shard(msgspec.Struct, frozen=True):
    kind: Literal["a", "b"]


class Info(msgspec.Struct, frozen=True):
    count: Annotated[int, msgspec.Meta(ge=1)]
    size: Annotated[float, msgspec.Meta(ge=0)]
    pair: tuple[Annotated[str, msgspec.Meta(pattern="^[a-z]+$")], Count] | None
    files: dict[str, Count] = {}
    shards: list[Shard] = []


GOOD = {"count": 3, "size": 2, "pair": ["a", 9], "files": {"x": 0}, "else": None}


def test_what_fits_is_returned_without_keys_that_nobody_asked_about(tmp_path):
    (tmp_path / "file.json").write_text(json.dumps(GOOD))
    assert json_file.read(tmp_path / "file.json", Info) == Info(3, 2.0, ("a", 9), {"x": 0})
    assert json_file.parse('{"count": 1, "size": 0, "pair": null}', Info, "text") == Info(1, 0.0, None)
    assert math.isnan(json_file.parse("NaN", float, "text"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON: Expecting value"),
        (b'{"count": 3', "not JSON: Expecting ','"),
        (b"\x93NUMPY\xff\x00", "not JSON: 'utf-8' codec can't decode"),
        (b"[" * 100_000, "not JSON: brackets are nested too deeply"),
        (b"9" * 5000, "not JSON: Exceeds the limit"),
        (b"[]", "expected object, found a list of 0"),
        (b"{}", "no key count"),
        ({"count": False}, "expected count to be int, found false"),
        ({"count": -5}, "expected count to be int >= 1, found -5"),
        ({"size": math.nan}, "expected size to be float >= 0.0, found NaN"),
        ({"size": 10**400}, "expected size to be a valid value, found 1000"),
        ({"pair": ["a"]}, "expected pair to be array of length 2, found a list of 1"),
        ({"pair": ["A", 1]}, "expected pair[0] to be str matching regex '^[a-z]+$', found \"A\""),
        ({"pair": ["a", 2**63]}, "expected pair[1] to be int <= 9223372036854775807, found 9223372036854775808"),
        ({"count": "\ud800"}, "half a surrogate pair in a string"),
        ({"files": []}, "expected files to be object, found a list of 0"),
        ({"files": {"x": -1}}, "expected files[...] to be int >= 0, found another value"),
        ({"shards": [{"kind": "b"}, {}]}, "no key shards[1].kind"),
        ({"shards": [{"kind": "c"}]}, 'expected shards[0].kind to be a valid value, found "c"'),
        ({"count": "x" * 99}, f'expected count to be int, found "{"x" * 59}...'),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, content, message):
    path = tmp_path / "file.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(GOOD | content).encode())
    with pytest.raises(InputError) as caught:
        json_file.read(path, Info)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < len(str(path)) + 200


def test_a_wrong_word_is_refused_with_those_to_choose_from_and_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match=r'^key: expected one of a, b, found "c"$'):
        errors.convert("c", Literal["a", "b"], "key")
    for path, problem in ((tmp_path / "none", "no such file"), (tmp_path, "is a folder, not a file")):
        with pytest.raises(InputError, match=rf"^{path}: {problem}$"):
            json_file.read(path, Info)


def test_numbers_that_json_does_not_know_are_null():
    value = {"a": [math.nan, (math.inf, 1.5)], "b": {"c": -math.inf}, "d": "NaN"}
    assert json_file.dumps(value) == '{"a": [null, [null, 1.5]], "b": {"c": null}, "d": "NaN"}'
    assert json_file.dumps({"a": "\u00e9"}, ensure_ascii=False, indent=1) == '{\n "a": "\u00e9"\n}'


def test_all_json_is_written_by_it():
    writers = [path for path in (ROOT / "elmo_tf").rglob("*.py") if re.search(r"\bjson\.dumps?\b", path.read_text())]
    assert {path.name for path in writers} == {"json_file.py", "config.py", "errors.py"}  # the others write no file
