"""MUC, B-cubed and CEAFe of coreference, as CoNLL's reference scorers (version 8.01) compute them.

Vilain et al. 1995 (MUC), Bagga and Baldwin 1998 (B-cubed), Luo 2005 (CEAFe), Pradhan et al. 2014 (the scorers). The
counts of all documents are added before precision and recall are computed.
"""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from elmo_tf import extras
from elmo_tf.annotated.mentions import Mention
from elmo_tf.tasks.scores.f1 import Counts

with extras.explain_missing_extra():
    import scipy.optimize

# The clusters of a document.
Clusters = Sequence[Sequence[Mention]]
Sets = list[set[Hashable]]


def score(gold: Iterable[Clusters], predicted: Iterable[Clusters]) -> dict[str, Counts]:
    """Returns the counts over all documents by metric: `muc`, `bcub`, `ceafe`.

    Mentions predicted several times count as in the scorers. A mention repeated in the key counts once, unlike in the
    scorers, whose CEAFe then exceeds 100 %.
    """
    total = dict.fromkeys(_METRICS, Counts())
    for gold_clusters, predicted_clusters in zip(gold, predicted, strict=True):
        key: Sets = [set(cluster) for cluster in gold_clusters]
        response = _deduplicated(predicted_clusters, set().union(*key))
        total = {name: total[name] + metric(key, response) for name, metric in _METRICS.items()}
    return total


def average_f1(counts: dict[str, Counts]) -> float:
    """Returns the mean of the three F1 in percent."""
    return sum(count.f1 for count in counts.values()) / len(counts)


def _deduplicated(clusters: Clusters, in_key: set[Hashable]) -> Sets:
    """Returns predicted clusters as the scorers count repeated mentions.

    A mention of the key counts only where it first occurs, in any cluster; other mentions count each time.
    """
    seen: set[Mention] = set()
    counted = []
    for cluster in clusters:
        kept: set[Hashable] = set()
        for number, mention in enumerate(cluster):
            if mention not in in_key:
                kept.add((mention, number))
            elif mention not in seen:
                seen.add(mention)
                kept.add(mention)
        if kept:
            counted.append(kept)
    return counted


def _muc(key: Sets, response: Sets) -> Counts:
    """Counts the links that remain in each cluster when its mentions are split as on the other side."""

    def links(clusters: Sets, others: Sets) -> tuple[int, int]:
        cluster_of = {mention: number for number, other in enumerate(others) for mention in other}
        kept = [len(cluster) - len({cluster_of.get(mention, mention) for mention in cluster}) for cluster in clusters]
        return sum(kept), sum(len(cluster) - 1 for cluster in clusters)

    return Counts(*links(key, response), *links(response, key))


def _b_cubed(key: Sets, response: Sets) -> Counts:
    """Adds up, over all mentions, the share of the mention's cluster that the other side also puts in its cluster."""

    def overlap(clusters: Sets, others: Sets) -> tuple[float, int]:
        cluster_of = {mention: other for other in others for mention in other}
        empty: set[Hashable] = set()
        shared = [
            len(cluster & cluster_of.get(mention, empty)) / len(cluster) for cluster in clusters for mention in cluster
        ]
        return sum(shared), sum(map(len, clusters))

    return Counts(*overlap(key, response), *overlap(response, key))


def _ceafe(key: Sets, response: Sets) -> Counts:
    """Adds up the similarity 2 |K and R| / (|K| + |R|) of clusters, matched one to one for the largest sum."""
    if not key or not response:
        return Counts(0, len(key), 0, len(response))
    similarity = np.array([[2 * len(ours & theirs) / (len(ours) + len(theirs)) for theirs in response] for ours in key])
    matched = float(similarity[scipy.optimize.linear_sum_assignment(-similarity)].sum())
    return Counts(matched, len(key), matched, len(response))


_METRICS = {"muc": _muc, "bcub": _b_cubed, "ceafe": _ceafe}
