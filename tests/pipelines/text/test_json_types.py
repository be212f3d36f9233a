"""Values read from JSON have the types that are asked for, or do not fit."""

import pytest

from pipelines.text.json_types import fits

KIND = {"files": {str: int}, "shards": [{"name": str, "bytes": int}], "other": dict}
VALUE = {"files": {"a": 0}, "shards": [{"name": "b", "bytes": 2**70, "more": None}], "other": {}, "more": []}


@pytest.mark.parametrize("value", [VALUE, VALUE | {"files": {}, "shards": []}])
def test_objects_with_the_keys_and_types_fit(value):
    assert fits(value, KIND)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        VALUE | {"files": [1]},
        VALUE | {"files": {"a": -1}},
        VALUE | {"files": {"a": 1.0}},
        VALUE | {"files": {"a": True}},
        VALUE | {"shards": {}},
        VALUE | {"shards": [{"name": "b"}]},
        VALUE | {"shards": [{"name": 1, "bytes": 1}]},
        VALUE | {"other": None},
    ],
    ids=str,
)
def test_other_values_do_not(value):
    assert not fits(value, KIND)
