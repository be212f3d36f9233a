"""The perplexity of a unigram model, the baseline of a language model."""

import numpy as np

from elmo_tf.records import blocks, record_folder
from elmo_tf.text.vocabulary import BEGIN_ID


def unigram_perplexity(records: record_folder.Records, heldout: record_folder.Records) -> float:
    """Returns the perplexity on `heldout` of word frequencies in `records`, each count plus 1.

    The model predicts the same tokens as a forward language model: the words and `</S>`.
    """

    def counts(folder: record_folder.Records) -> np.ndarray:
        total = np.zeros(len(folder.vocabulary), np.int64)
        for shard in folder.shards:
            if records := record_folder.read_shard(shard):
                total += np.bincount(blocks.decode_examples(records, len(total)).token_ids, minlength=len(total))
        total[BEGIN_ID] = 0
        return total

    seen, predicted = counts(records) + 1, counts(heldout)
    return float(np.exp(-(predicted * np.log(seen / seen.sum())).sum() / predicted.sum()))
