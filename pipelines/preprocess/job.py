"""The pipelines of preprocessing, one after the other; each leaves its results in the output folder."""

from collections.abc import Sequence
from typing import NamedTuple

from apache_beam.options.pipeline_options import PipelineOptions

from elmo_tf.errors import InputError
from elmo_tf.pipelines.preprocess import counts, shards, shuffle
from elmo_tf.pipelines.running import do_once
from elmo_tf.pipelines.running.journal import Journal, Result
from elmo_tf.pipelines.text import corpora, filesystems, sentences
from elmo_tf.records import record_folder
from elmo_tf.text import vocabulary


class Job(NamedTuple):
    """What to do."""

    journal: Journal  # in the folder of the training split
    folders: dict[str, str]  # of each split
    settings: sentences.Settings
    size: int  # bytes of text
    num_tasks: int
    num_shards: int
    beam_options: PipelineOptions

    def count(self, min_count: int, max_size: int | None) -> tuple[vocabulary.Vocabulary, int]:
        """Returns the vocabulary of the training split, and the number of distinct words counted for it.

        Raises:
            InputError: if no word is frequent enough.
        """
        counted = self.journal.result(counts.VOCABULARY, 0, counts.Counted)
        if not counted:
            counting = counts.WriteVocabulary(self.journal, self.settings, min_count, max_size)
            do_once.run("counting", self.journal, counts.PHASE, self._tasks, counting, self.beam_options)
        path = counts.path(self.journal)
        words = vocabulary.from_bytes(filesystems.read(path), path)
        counted = counted or self.journal.result(counts.VOCABULARY, 0, counts.Counted)
        if counted.types and len(words) == len(vocabulary.SPECIAL_TOKENS):
            expected = f"at most {counted.most}, the count of the most frequent word"
            raise InputError("min_count", expected, min_count)
        return words, counted.types

    def keep(self, words: vocabulary.Vocabulary) -> None:
        """Writes the vocabulary to every output folder, for the next phases and for readers of the records."""
        for folder in self.folders.values():
            filesystems.write(filesystems.join(folder, record_folder.VOCABULARY_FILE), words.to_bytes())

    def write(self) -> tuple[Sequence[Result], Sequence[shards.Written]]:
        """Writes the shards in the order of the text; returns the results of reading it and of writing them."""
        step = shards.WriteTask(self.journal, self.folders, self.settings, self.num_shards)
        written = do_once.run_step("writing", self.journal, step, self._tasks, self.beam_options)
        return written, written

    def shuffle(self) -> tuple[Sequence[Result], Sequence[shards.Written]]:
        """Writes the shards shuffled; returns the results of reading the text and of writing them."""
        num_buckets = self.num_shards * max(1, -(-self.size // (self.num_shards * shuffle.BUCKET_BYTES)))
        scatter = shuffle.Scatter(self.journal, self.folders, self.settings, num_buckets)
        read = do_once.run_step("shuffling, part 1 of 2:", self.journal, scatter, self._tasks, self.beam_options)
        gather = shuffle.Gather(self.journal, self.folders, self.settings.seed, self.num_shards, num_buckets, len(read))
        tasks = shuffle.gather_tasks(read, self.num_shards)
        return read, do_once.run_step("shuffling, part 2 of 2:", self.journal, gather, tasks, self.beam_options)

    @property
    def _tasks(self) -> do_once.Tasks:
        """The parts of the text. The order of the sentences needs a plan of all files, which is made on a worker."""
        journal, num_shards = self.journal, self.num_shards
        return do_once.Tasks(lambda: corpora.plan(journal.corpus(), num_shards), self.num_tasks, self.size)
