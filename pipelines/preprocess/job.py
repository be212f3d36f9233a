"""The pipelines of preprocessing, one after the other; each leaves its results in the output folder."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from elmo_tf.errors import InputError
from elmo_tf.records import record_folder
from elmo_tf.text import vocabulary
from pipelines.preprocess import counts, shards, shuffle
from pipelines.running import do_once, journal
from pipelines.text import corpora, filesystems, sentences

_VOCABULARY = "vocabulary"  # phase, for the journal

Results = list[dict[str, Any]]  # of `do_once.DoOnce`, one a task


class Job(NamedTuple):
    """What is to be done."""

    folders: dict[str, str]  # of each split
    settings: sentences.Settings
    tasks: list[corpora.Task]
    num_shards: int
    beam_options: PipelineOptions

    @property
    def notes(self) -> journal.Journal:
        """Where the tasks of every phase leave their results."""
        return journal.Journal(self.folders[sentences.TRAIN])

    def count(self, min_count: int, max_size: int | None) -> tuple[vocabulary.Vocabulary, int]:
        """Returns the vocabulary of the training split, and how many distinct words were counted for it.

        Raises:
            InputError: if no word is frequent enough.
        """
        done = self.notes.result(_VOCABULARY, 0)
        if done is None:
            counting = counts.WriteCounts(self.notes.folder, self.settings)
            do_once.run("counting", self.notes, counts.PHASE, self.tasks, counting, self.beam_options)
            kept, types, most = [], 0, 0
            for pairs in counts.read_counts(self.notes.folder):
                types += len(pairs)
                most = max(most, *(count for _, count in pairs))
                kept.extend(pair for pair in pairs if pair[1] >= min_count)
            words = vocabulary.from_counts(kept, max_size=max_size)
            if types and len(words) == len(vocabulary.SPECIAL_TOKENS):
                raise InputError(
                    f"--min-count: expected at most {most}, the most frequent word's count, found {min_count}"
                )
            filesystems.write(self.notes.path(record_folder.VOCABULARY_FILE), words.to_bytes())
            self.notes.done(_VOCABULARY, 0, {"types": types})
            return words, types
        path = self.notes.path(record_folder.VOCABULARY_FILE)
        return vocabulary.from_bytes(filesystems.read(path), path), done["types"]

    def keep(self, words: vocabulary.Vocabulary) -> None:
        """Writes the vocabulary to where the following phases, and readers of the records, look for it."""
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
        read = self._do(
            "shuffling, part 1 of 2:", self.tasks, shuffle.Scatter(self.folders, num_buckets, self.settings)
        )
        gathering = shuffle.gather_tasks(read, self.num_shards)
        step = shuffle.Gather(self.folders, self.num_shards, num_buckets, len(self.tasks), self.settings.seed)
        return read, self._do("shuffling, part 2 of 2:", gathering, step)

    def _do(self, doing: str, elements: Sequence[do_once.Numbered], step: do_once.DoOnce) -> Results:
        do_once.run(doing, self.notes, step.phase, elements, beam.ParDo(step), self.beam_options)
        return [self.notes.result(step.phase, element.number) for element in elements]
