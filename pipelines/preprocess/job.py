"""The pipelines of preprocessing, one after the other; each leaves its results in the output folder."""

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from apache_beam.options.pipeline_options import PipelineOptions

from elmo_tf.errors import InputError
from elmo_tf.files.json_file import Object, Text, Whole
from elmo_tf.pipelines.preprocess import counts, shards, shuffle
from elmo_tf.pipelines.running import do_once, journal
from elmo_tf.pipelines.text import corpora, filesystems, sentences
from elmo_tf.records import record_folder
from elmo_tf.text import vocabulary

_VOCABULARY = "vocabulary"  # the phase's name in the journal
_VOCABULARY_SCHEMA = Object({"types": Whole(), "sha256": Text()})

Results = list[dict[str, Any]]  # of `do_once.DoOnce`, one per task


class Job(NamedTuple):
    """What to do."""

    folders: dict[str, str]  # of each split
    settings: sentences.Settings
    tasks: list[corpora.Task]
    num_shards: int
    beam_options: PipelineOptions

    @property
    def notes(self) -> journal.Journal:
        """The journal of all phases."""
        return journal.opened(self.folders[sentences.TRAIN])

    def count(self, min_count: int, max_size: int | None) -> tuple[vocabulary.Vocabulary, int]:
        """Returns the vocabulary of the training split, and the number of distinct words counted for it.

        Raises:
            InputError: if no word is frequent enough.
            filesystems.ReadError: if counts are missing or damaged.
        """
        if counted := self._counted():
            return counted
        counting = counts.WriteCounts(self.notes.folder, self.settings)
        do_once.run("counting", self.notes, counts.PHASE, self.tasks, counting, self.beam_options)
        kept, types, most = [], 0, 0
        for pairs in counts.read_counts(self.notes.folder):
            types += len(pairs)
            most = max([most, *(count for _, count in pairs)])
            kept.extend(pair for pair in pairs if pair[1] >= min_count)
        words = vocabulary.from_counts(kept, max_size=max_size)
        if types and len(words) == len(vocabulary.SPECIAL_TOKENS):
            raise InputError("min_count", f"at most {most}, the count of the most frequent word", min_count)
        filesystems.write(self._vocabulary_path, words.to_bytes())
        self.notes.done(_VOCABULARY, 0, {"types": types, "sha256": words.sha256()})
        return words, types

    def keep(self, words: vocabulary.Vocabulary) -> None:
        """Writes the vocabulary to every output folder, for the next phases and for readers of the records."""
        for folder in self.folders.values():
            filesystems.write(filesystems.join(folder, record_folder.VOCABULARY_FILE), words.to_bytes())

    def write(self) -> tuple[Results, Results]:
        """Writes the shards in the order of the text; returns the results of reading it and of writing them."""
        step = shards.WriteTask(self.folders, self.num_shards, self.settings)
        written = self._do("writing", self.tasks, step)
        return written, written

    def shuffle(self) -> tuple[Results, Results]:
        """Writes the shards shuffled; returns the results of reading the text and of writing them."""
        size = sum(task.size for task in self.tasks)
        num_buckets = self.num_shards * max(1, -(-size // (self.num_shards * shuffle.BUCKET_BYTES)))
        scattering = shuffle.Scatter(self.folders, num_buckets, self.settings)
        read = self._do("shuffling, part 1 of 2:", self.tasks, scattering)
        tasks = shuffle.gather_tasks(read, self.num_shards)
        places = shuffle.write_places(self.notes, self.folders, read, num_buckets)
        gathering = shuffle.Gather(self.folders, self.num_shards, num_buckets, places, self.settings.seed)
        return read, self._do("shuffling, part 2 of 2:", tasks, gathering)

    @property
    def _vocabulary_path(self) -> str:
        return self.notes.path(record_folder.VOCABULARY_FILE)

    def _counted(self) -> tuple[vocabulary.Vocabulary, int] | None:
        """Returns what an earlier run has counted; None if it is not there or damaged."""
        result = self.notes.result(_VOCABULARY, 0, _VOCABULARY_SCHEMA)
        if result is None or not filesystems.exists(self._vocabulary_path):
            return None
        content = filesystems.read(self._vocabulary_path)
        if hashlib.sha256(content).hexdigest() != result["sha256"]:
            return None
        return vocabulary.from_bytes(content, self._vocabulary_path), result["types"]

    def _do(self, doing: str, tasks: Iterable[do_once.Numbered], step: do_once.DoOnce) -> Results:
        return do_once.run_step(doing, self.notes, step, tasks, self.beam_options)
