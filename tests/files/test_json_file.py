"""JSON files: whatever is in one, an error names the file, what was expected and what was found."""

import json
import math

import pytest

from elmo_tf.errors import InputError
from elmo_tf.files import json_file
from elmo_tf.files.json_file import ListOf, MapOf, Nullable, Object, OneOf, Real, Row, Text, Whole

SCHEMA = Object(
    {"count": Whole(1), "sizes": ListOf(Real(0)), "pair": Nullable(Row((Text(r"[a-z]+"), Whole(0, 9))))},
    {"files": MapOf(Object({"bytes": Whole()})), "shards": ListOf(Object({"kind": OneOf(("a", "b"))}))},
)
GOOD = {"count": 3, "sizes": [1, 2.5], "pair": ["a", 9], "files": {"x": {"bytes": 0}}, "else": None}


def test_what_fits_is_returned_with_keys_that_nobody_asked_about(tmp_path):
    for value in (GOOD, GOOD | {"pair": None}, {key: GOOD[key] for key in ("count", "sizes", "pair")}):
        (tmp_path / "file.json").write_text(json.dumps(value))
        assert json_file.read(tmp_path / "file.json", SCHEMA) == value


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected JSON, found Expecting value"),
        (b'{"count": 3', "expected JSON, found Expecting ','"),
        (b"\x93NUMPY\xff\x00", "expected JSON, found 'utf-8' codec can't decode"),
        (bytes(64), "expected JSON, found "),
        (b"[" * 100_000, "expected JSON, found brackets nested too deeply"),
        (b"9" * 5000, "expected JSON, found Exceeds the limit"),
        (b"[]", "expected an object, found a list of 0"),
        (b"{}", "expected the key count, found none"),
        ({"count": None}, "expected count to be a whole number of at least 1, found null"),
        ({"count": False}, "expected count to be a whole number of at least 1, found false"),
        ({"count": 1.0}, "expected count to be a whole number of at least 1, found 1.0"),
        ({"count": -5}, "expected count to be a whole number of at least 1, found -5"),
        ({"count": 2**63}, "expected count to be a whole number of at least 1, found 9223372036854775808"),
        ({"sizes": "12"}, 'expected sizes to be a list, found "12"'),
        ({"sizes": [1, "2"]}, 'expected sizes[1] to be a finite number of at least 0, found "2"'),
        ({"sizes": [math.inf]}, "expected sizes[0] to be a finite number of at least 0, found Infinity"),
        ({"sizes": [math.nan]}, "expected sizes[0] to be a finite number of at least 0, found NaN"),
        ({"sizes": [10**400]}, "expected sizes[0] to be a finite number of at least 0, found 1000"),
        ({"pair": ["a"]}, "expected pair to be a list of 2, found a list of 1"),
        ({"pair": ["A", 1]}, 'expected pair[0] to be a string like [a-z]+, found "A"'),
        ({"pair": ["a", 10]}, "expected pair[1] to be a whole number from 0 to 9, found 10"),
        ({"files": []}, "expected files to be an object, found a list of 0"),
        ({"files": {"x": {}}}, "expected the key files.x.bytes, found none"),
        ({"shards": [{"kind": "b"}, {}]}, "expected the key shards[1].kind, found none"),
        ({"shards": [{"kind": "c"}]}, 'expected shards[0].kind to be a or b, found "c"'),
        ({"shards": [{"kind": ["a"]}]}, "expected shards[0].kind to be a or b, found a list of 1"),
        (
            {"files": {"x": {"bytes": "x" * 99}}},
            f'expected files.x.bytes to be a whole number of at least 0, found "{"x" * 59}...',
        ),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, content, message):
    path = tmp_path / "file.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(GOOD | content).encode())
    with pytest.raises(InputError) as caught:
        json_file.read(path, SCHEMA)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < len(str(path)) + 200


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match=rf"^{tmp_path}/none: expected a JSON file, found No such file"):
        json_file.read(tmp_path / "none", SCHEMA)
    with pytest.raises(InputError, match=rf"^{tmp_path}: expected a JSON file, found Is a directory"):
        json_file.read(tmp_path, SCHEMA)


def test_an_infinite_number_can_be_allowed():
    assert json_file.parse('{"x": Infinity}', Object({"x": Real(0, math.inf)}), "text") == {"x": math.inf}
    assert math.isnan(json_file.parse("NaN", Real(0, nan=True), "text"))
    with pytest.raises(InputError, match="text: expected x to be a number of at least 0, found NaN"):
        json_file.parse('{"x": NaN}', Object({"x": Real(0, math.inf)}), "text")


def test_an_error_about_a_key_becomes_one_about_the_file():
    message = r"^a/config.json: expected model.lstm.units to be at least 1, found 0$"
    with pytest.raises(InputError, match=message), json_file.contents_of("a/config.json"):
        raise InputError("model.lstm.units", "at least 1", 0)


def test_an_error_names_the_callers_parameter_and_the_file(tmp_path):
    path = tmp_path / "file.json"
    with pytest.raises(InputError, match=rf"^model: expected a JSON file, found No such file or directory: {path}$"):
        json_file.read(path, SCHEMA, parameter="model")
    path.write_text("[]")
    with pytest.raises(InputError, match=rf"^model: expected an object, found a list of 0: {path}$"):
        json_file.read(path, SCHEMA, parameter="model")
    with pytest.raises(InputError, match=r"^model: expected JSON, found Expecting value.*: an attribute$"):
        json_file.parse("", SCHEMA, "an attribute", parameter="model")
    message = r"^model: expected model.lstm.units to be at least 1, found 0: a/config.json$"
    with pytest.raises(InputError, match=message), json_file.contents_of("a/config.json", parameter="model"):
        raise InputError("model.lstm.units", "at least 1", 0)
