"""What counting words alone achieves: the perplexity that a language model has to beat."""

import numpy as np

from elmo_tf.data import records as records_lib
from elmo_tf.data.vocabulary import BEGIN_ID


def unigram_perplexity(records: records_lib.Records, heldout: records_lib.Records) -> float:
    """Returns the held-out perplexity of a model that knows only how often each word occurs, each count plus one.

    It predicts the same tokens as a forward language model: the words and `</S>`.
    """

    def counts(folder: records_lib.Records) -> np.ndarray:
        total = np.zeros(len(folder.vocabulary), np.int64)
        for shard in folder.shards:
            ids = [records_lib.decode_example(record).token_ids for record in records_lib.read_shard(shard)]
            if ids:
                total += np.bincount(np.concatenate(ids), minlength=len(total))
        total[BEGIN_ID] = 0
        return total

    seen, asked = counts(records) + 1, counts(heldout)
    return float(np.exp(-(asked * np.log(seen / seen.sum())).sum() / asked.sum()))
