"""Windows: their contents, each sentence once, positions that resume exactly; prefetching."""

import itertools
import threading
import time
import weakref

import msgspec
import numpy as np
import pytest

from elmo_tf.errors import InputError
from elmo_tf.records import blocks, record_folder, wire
from elmo_tf.records.windows import Position, Windows, prefetch
from elmo_tf.text import char_ids
from tests import float64, helpers

SENTENCES = [" ".join(f"w{(7 * n + m) % 23}" for m in range(n % 6 + 1)) for n in range(41)]
DIRECTIONS = ("forward", "backward")


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return helpers.write_records(tmp_path_factory.mktemp("records"), SENTENCES, num_shards=5)


@pytest.fixture
def small_pools(monkeypatch):
    """One shard in memory at a time, few sentences decoded at once."""
    monkeypatch.setattr(blocks, "_POOL_SHARDS", 1)
    monkeypatch.setattr(blocks, "_BLOCK_SENTENCES", 3)


def _windows(*arguments, **keywords):
    return [window for window, _ in Windows(*arguments, **keywords)]


def _inputs(window, records, direction):
    """The numbers of the tokens that a window's characters spell, 0 where it is masked."""
    spelled = char_ids.encode_tokens(records.vocabulary.tokens).astype(np.int32)
    numbers = {row.tobytes(): number for number, row in enumerate(spelled)}
    rows = helpers.char_ids_of(window, direction).reshape(-1, spelled.shape[1])
    ids = np.array([numbers.get(row.tobytes(), 2) for row in rows], np.int32)
    return np.where(window.mask, ids.reshape(window.mask.shape), 0)


def _sentences(windows, records, direction):
    """Follows each stream and returns its sentences as words."""
    sentences = []
    for row in range(len(windows[0].mask)):
        inputs = [_inputs(window, records, direction)[row][window.mask[row]] for window in windows]
        words = [records.vocabulary.tokens[number].decode() for number in np.concatenate(inputs)]
        begin, step = ("<S>", 1) if direction == "forward" else ("</S>", -1)
        for sentence in " ".join(words).split(begin)[1:]:
            sentences.append(" ".join(sentence.split()[::step]))
    return sentences


def _assert_same(ours, others):
    assert len(ours) == len(others)
    for (window, position), (other_window, other_position) in zip(ours, others, strict=True):
        for name, array, other in zip(window._fields, window, other_window, strict=True):
            np.testing.assert_array_equal(array, other, err_msg=name)
        assert position == other_position


@pytest.mark.parametrize("max_chars", [50, 6])
def test_characters_are_those_of_the_inputs(tmp_path, max_chars):
    words = ["a", "naïve", "x" * 60, "b"]
    records = helpers.write_records(tmp_path, [" ".join(words)], vocabulary=["a"], num_shards=1)
    (window,) = _windows(records, batch_size=1, unroll_steps=6, max_chars_per_token=max_chars, epochs=1)
    tokens = [word.encode() for word in words]
    for direction, inputs in (("forward", [b"<S>", *tokens]), ("backward", [b"</S>", *tokens[::-1]])):
        expected = [*(float64.encode(token, max_chars) for token in inputs), [0] * max_chars]
        np.testing.assert_array_equal(helpers.char_ids_of(window, direction)[0], expected)
    np.testing.assert_array_equal(window.forward_token_ids[0], [0, 3, 2, 2, 2, 0])  # 2 is <UNK>


@pytest.mark.parametrize(("batch_size", "unroll_steps"), [(1, 1), (4, 5), (3, 200), (60, 2)])
@pytest.mark.parametrize("seed", [None, 7])
def test_every_sentence_is_there_once_an_epoch(records, batch_size, unroll_steps, seed, small_pools):
    windows = _windows(records, batch_size, unroll_steps, seed=seed, epochs=2)
    for direction in DIRECTIONS:
        assert sorted(_sentences(windows, records, direction)) == sorted(SENTENCES * 2)


def _order(records, seed, epochs=1):
    return _sentences(_windows(records, 1, 9, seed=seed, epochs=epochs), records, "forward")


def test_the_seed_decides_the_order_of_each_epoch_in_which_shards_mix_and_pools_are_shuffled(records, monkeypatch):
    order = _order(records, 1, epochs=2)
    assert order[:41] == _order(records, 1)
    assert order[:41] != order[41:]
    assert order[:41] not in (_order(records, 2), SENTENCES)
    positions = [order.index(sentence) for sentence in SENTENCES[:9] if SENTENCES.count(sentence) == 1]
    assert max(positions) - min(positions) > 20
    monkeypatch.setattr(blocks, "_POOL_SHARDS", 1)
    assert sorted(_order(records, 1)[:9]) != sorted(SENTENCES[:9])


def test_only_the_end_is_masked_and_all_ids_are_0_there(records):
    windows = _windows(records, 4, 5, seed=7, epochs=2)
    assert all(window.mask.all() for window in windows[:-3])
    assert not windows[-1].mask.all()
    for window in windows:
        assert (np.diff(window.mask.astype(int), axis=1) <= 0).all()
        ids = [helpers.char_ids_of(window, direction) for direction in DIRECTIONS]
        for array in (*ids, window.forward_token_ids, window.forward_targets, window.backward_targets):
            assert not array[~window.mask].any()


@pytest.mark.parametrize("seed", [None, 7])
@pytest.mark.parametrize("pool_shards", [1, 8])
def test_any_position_resumes_with_the_next_window(records, seed, pool_shards, monkeypatch):
    monkeypatch.setattr(blocks, "_POOL_SHARDS", pool_shards)
    monkeypatch.setattr(blocks, "_BLOCK_SENTENCES", 5)
    arguments = {"batch_size": 3, "unroll_steps": 5, "seed": seed, "epochs": 2}
    every = list(Windows(records, **arguments))
    assert len(every) > 20
    assert {position.epoch for _, position in every} == {0, 1}
    for number, (_, position) in enumerate(every):
        _assert_same(list(Windows(records, **arguments, position=position)), every[number + 1 :])


@pytest.mark.parametrize("rows", [range(3), range(2, 4), range(4, 5), range(5, 5)])
def test_a_worker_cuts_its_own_rows_and_has_the_position_of_all(records, rows, small_pools):
    arguments = {"batch_size": 5, "unroll_steps": 4, "seed": 7, "epochs": 1}
    whole = [(window.part(rows.start, rows.stop), position) for window, position in Windows(records, **arguments)]
    _assert_same(list(Windows(records, **arguments, rows=rows)), whole)


@pytest.mark.parametrize("seed", [None, 7])
def test_a_record_that_is_not_a_sentence_or_is_missing_is_an_input_error_with_its_place(tmp_path, seed):
    records = helpers.write_records(tmp_path, SENTENCES, num_shards=2)
    shard = records.shards[1]
    first, second, *rest = map(wire.frame, record_folder.read_shard(shard))
    not_a_sentence = f"the record at byte {len(first)} is not a sentence: it has no token_ids"
    for start, expected in (
        ([first, wire.frame(b"\xff")], not_a_sentence),  # all checksums are right
        ([second], "has 19 sentences, info.json says 20"),
    ):
        shard.write_bytes(b"".join([*start, *rest]))
        with pytest.raises(InputError, match=f"^{shard}: {expected}"):
            list(Windows(records, 2, 5, seed=seed, epochs=1))


def test_position_that_does_not_fit_is_an_input_error(records):
    with pytest.raises(InputError, match="position: 2 streams, not 3"):
        next(iter(Windows(records, 3, 5, position=Position(0, 2, (None, None)))))
    with pytest.raises(InputError, match="position: the record of stream 1 is not a sentence"):
        next(iter(Windows(records, 2, 5, position=Position(0, 2, (None, (b"?", 1))))))


def test_only_one_pool_of_shards_is_in_memory(records, small_pools, monkeypatch):
    loaded, read = [], record_folder.read_shard

    class Shard(list):  # which can be referred to weakly
        pass

    def load(path):
        assert [name for name, shard in loaded if shard() is not None] == []
        shard = Shard(read(path))
        loaded.append((path.name, weakref.ref(shard)))
        return shard

    monkeypatch.setattr(record_folder, "read_shard", load)
    assert len(_windows(records, 2, 5, seed=7, epochs=2)) > 5
    assert len(loaded) == 10


def _one_by_one(sentences, batch_size, unroll_steps):
    """Yields windows as lists of each row's inputs, `((forward, target), (backward, target))`: the plain loop."""
    sentences = iter(sentences)
    rows = [[] for _ in range(batch_size)]
    while True:
        for row in rows:
            while len(row) < unroll_steps and (ids := next(sentences, None)) is not None:
                row.extend(zip(itertools.pairwise(ids), itertools.pairwise(ids[::-1]), strict=True))
        if not any(rows):
            return
        yield [row[:unroll_steps] for row in rows]
        rows = [row[unroll_steps:] for row in rows]


@pytest.mark.parametrize(("batch_size", "unroll_steps", "at_once"), [(1, 1, 3), (5, 7, 4), (40, 3, 16), (3, 500, 2)])
def test_windows_are_those_of_the_plain_loop(tmp_path, monkeypatch, batch_size, unroll_steps, at_once):
    monkeypatch.setattr(blocks, "_BLOCK_SENTENCES", at_once)
    monkeypatch.setattr(blocks, "_BLOCK_BYTES", 5_000)
    random = np.random.default_rng(batch_size)
    words = [f"{number}" * (number % 17 + 1) for number in range(300)] + ["<S>", "\u00ff"]
    lengths = random.choice([0, 1, 2, 20, 400], 150, p=[0.1, 0.2, 0.4, 0.25, 0.05])
    sentences = [" ".join(random.choice(words, length)) for length in lengths]
    records = helpers.write_records(tmp_path, sentences, words[:100], num_shards=4)
    ids = [[0, *records.vocabulary.ids(sentence.encode().split()), 1] for sentence in sentences]
    windows = _windows(records, batch_size, unroll_steps, epochs=1)
    expected = list(_one_by_one(ids, batch_size, unroll_steps))
    assert len(windows) == len(expected)
    for window, rows in zip(windows, expected, strict=True):
        np.testing.assert_array_equal(window.mask.sum(1), [len(row) for row in rows])
        for number, row in enumerate(rows):
            backward = _inputs(window, records, "backward"), window.backward_targets
            arrays = (window.forward_token_ids, window.forward_targets, *backward)
            columns = [array[number][window.mask[number]].tolist() for array in arrays]
            assert list(zip(*columns, strict=True)) == [(*forward, *backward) for forward, backward in row]


def test_each_distinct_token_has_one_row_in_the_order_of_the_inputs(records):
    for window in _windows(records, 3, 5, seed=7, epochs=1):
        words = np.stack([window.forward_words, window.backward_words]).ravel()
        count = words.max() + 1
        first = [words.tolist().index(word) for word in range(count)]
        assert first == sorted(first)
        assert len(np.unique(window.char_ids[:count], axis=0)) == count
        assert not window.char_ids[count:].any()


def test_a_part_of_a_window_has_its_own_streams_and_tokens_only(records):
    window = _windows(records, 4, 5, seed=7, epochs=1)[0]
    assert window.part(0, 4) is window
    part = window.part(1, 3)
    for direction in DIRECTIONS:
        np.testing.assert_array_equal(helpers.char_ids_of(part, direction), helpers.char_ids_of(window, direction)[1:3])
    np.testing.assert_array_equal(part.forward_targets, window.forward_targets[1:3])
    assert part.char_ids.shape == (2 * 2 * 5, 50)
    used = np.stack([part.forward_words, part.backward_words])
    assert len(np.unique(used)) == used.max() + 1 < len(np.unique(window.forward_words))
    assert all(array.dtype == other.dtype for array, other in zip(part, window, strict=True))


def test_prefetch_passes_items_on_in_order_and_then_the_producers_exception():
    def items():
        yield from range(50)
        raise InputError("damaged")

    received = prefetch(items(), depth=2)
    assert [next(received) for _ in range(50)] == list(range(50))
    with pytest.raises(InputError, match="damaged"):
        next(received)


def test_prefetch_makes_no_more_than_its_depth_ahead_and_ends_its_thread_when_closed():
    before, made = set(threading.enumerate()), []
    received = prefetch((made.append(n) or n for n in itertools.count()), depth=3)
    assert next(received) == 0
    (thread,) = set(threading.enumerate()) - before
    while len(made) < 1 + 3:
        time.sleep(0.01)
    time.sleep(0.05)
    assert len(made) == 1 + 3
    received.close()
    thread.join(timeout=5)
    assert not thread.is_alive()


def test_records_without_sentences_are_an_error_and_no_endless_loop(tmp_path):
    made = helpers.write_records(tmp_path / "data", ["a b"], num_shards=1)
    made.shards[0].write_bytes(b"")
    (shard,) = made.info.shards
    info = msgspec.structs.replace(made.info, shards=[msgspec.structs.replace(shard, sentences=0)])
    empty = made._replace(info=info)
    with pytest.raises(InputError, match=r"^.*data: no sentences$"):
        next(iter(Windows(empty, 2, 5)))


def test_waiting_for_an_item_ends_on_request():
    ready, asked = threading.Event(), []

    def items():
        yield 1
        ready.wait(100)
        yield 2

    def interrupted():
        asked.append(True)
        return len(asked) == 2

    assert list(prefetch(items(), interrupted=interrupted)) == [1]
    assert len(asked) == 2
    ready.set()
