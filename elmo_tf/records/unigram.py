"""What counting words alone achieves: the perplexity that a language model has to beat."""

import numpy as np

from elmo_tf.records import record_folder
from elmo_tf.text.vocabulary import BEGIN_ID


def unigram_perplexity(records: record_folder.Records, heldout: record_folder.Records) -> float:
    """Returns the held-out perplexity of a model that knows only how often each word occurs, each count plus one.

    It predicts the same tokens as a forward language model: the words and `</S>`.
    """

    def counts(folder: record_folder.Records) -> np.ndarray:
        total = np.zeros(len(folder.vocabulary), np.int64)
        for shard in folder.shards:
            ids = [record_folder.decode_example(record).token_ids for record in record_folder.read_shard(shard)]
            if ids:
                total += np.bincount(np.concatenate(ids), minlength=len(total))
        total[BEGIN_ID] = 0
        return total

    seen, asked = counts(records) + 1, counts(heldout)
    return float(np.exp(-(asked * np.log(seen / seen.sum())).sum() / asked.sum()))
