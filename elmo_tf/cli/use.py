"""The commands `neighbors`, `score`, `surprisal`, `fill` and `verify`: a model in use."""

import argparse
import csv
import io
import itertools
import logging
import os
from typing import TYPE_CHECKING, Any

from elmo_tf.cli import quiet
from elmo_tf.cli.arguments import SAVEDMODEL, add_command, index_or_name, positive, text_file
from elmo_tf.corpus import sentences
from elmo_tf.display import with_count
from elmo_tf.errors import InputError, printable
from elmo_tf.files import json_file, staging, stores
from elmo_tf.text import tokenizers

if TYPE_CHECKING:
    from elmo_tf.embedder import Embedder
    from elmo_tf.scoring import Score, Surprisal

_MODEL = "a model with a softmax: english (default), a workdir of `elmo-tf train`, or an export made with --softmax"
_TEXT = "one sentence per line, split by the model's tokenizer, or FASTA; plain or compressed; - for standard input"
_LINES_AT_ONCE = 4096
_TOKENS_OF_A_WORD = 3  # at most, of a word as it is written, such as `don't.`

_log = logging.getLogger("elmo_tf")


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Adds the commands of this file."""
    neighbors = add_command(
        commands,
        "neighbors",
        _neighbors,
        "print the uses in a text that are nearest to a word in a sentence, by the cosine of their vectors after "
        "subtracting the mean of the text's vectors",
        needs_tensorflow=False,
    )
    add = neighbors.add_argument
    add("--model", default="english", metavar="SOURCE", help=f"{SAVEDMODEL}; default: english")
    add("--input", required=True, type=text_file, metavar="FILE", help=_TEXT)
    add("--word", required=True, metavar="W", help="the word, a token of --sentence, in upper or lower case")
    add("--sentence", required=True, metavar='"..."', help="a sentence with W once; skipped in the text")
    help_text = "mix (default), the weighted vector; top, average, sum; or a layer: 0, 1, 2, .."
    add("--layers", type=index_or_name, default="mix", metavar="L", help=help_text)
    add("--count", type=positive, default=10, metavar="N", help="uses to print, one per sentence (default: 10)")
    add("--same-word", action="store_true", help="only uses of W, in upper or lower case (default: all words)")
    add("--glove", metavar="FILE", help="word vectors as text: print the words nearest to W as well")
    add("--json", action="store_true", help="print one line of JSON")

    help_text = "print the log-probability of each sentence as a line of JSON"
    score = add_command(commands, "score", _score, help_text, needs_tensorflow=False)
    score.add_argument("--model", default="english", metavar="SOURCE", help=_MODEL)
    score.add_argument("--input", required=True, type=text_file, metavar="FILE", help=_TEXT)
    score.add_argument("--tokens", action="store_true", help="add the tokens and the log-probability of each")

    help_text = "write the surprisal of each word of a text, in bits, as tab-separated values"
    surprisal = add_command(commands, "surprisal", _surprisal, help_text, needs_tensorflow=False)
    surprisal.add_argument("--model", default="english", metavar="SOURCE", help=_MODEL)
    help_text = f"{_TEXT}; blank lines separate passages"
    surprisal.add_argument("--input", required=True, type=text_file, metavar="FILE", help=help_text)
    surprisal.add_argument("--output", required=True, metavar="FILE", help="a new file, one row per word")
    help_text = "carry states from sentence to sentence of a passage; default: sentence, from the zero state"
    surprisal.add_argument("--context", choices=("sentence", "passage"), default="sentence", help=help_text)

    help_text = "print the likeliest words for a gap in a sentence, as lines of JSON"
    fill = add_command(commands, "fill", _fill, help_text, needs_tensorflow=False)
    fill.add_argument("text", metavar="SENTENCE", help="a sentence with [MASK], or any sentence with --word")
    fill.add_argument("--model", default="english", metavar="SOURCE", help=_MODEL)
    fill.add_argument("--word", metavar="W", help="find substitutes for this word of the sentence")
    fill.add_argument("--top", type=positive, default=10, metavar="N", help="words to print (default: 10)")

    verify = add_command(
        commands,
        "verify",
        _verify,
        "verify an exported model: its files by their SHA-256, and its vectors of a few sentences in a fresh process; "
        "for a model's name, its weights by their SHA-256",
        needs_tensorflow=False,
    )
    verify.add_argument("--model", required=True, metavar="SOURCE", help=SAVEDMODEL)


def _verify(arguments: argparse.Namespace) -> None:
    from elmo_tf import sources
    from elmo_tf.published.models import is_hub_address
    from elmo_tf.savedmodel import verification

    on_hub = sources.find(arguments.model) if is_hub_address(arguments.model) else None
    if isinstance(on_hub, sources.Published):  # large files have been compared with the hub's SHA-256
        print(f"{on_hub.name}: intact, with the {len(on_hub.weights())} arrays that its options ask for")
        return
    for line in verification.verify(on_hub.path if on_hub else arguments.model):
        print(line, flush=True)


def _embedder(model: str, text: str | None = None) -> "Embedder":
    """Returns the model; TensorFlow computes if only it can read the model, or if it scores the file `text` sooner."""
    from elmo_tf import embedder, engines, sources

    source = sources.find(model)
    _log.info("sentences are split by the tokenizer %s", source.tokenizer)
    if (engine := engines.fastest(source, _num_tokens(text) if text else 0)) == "tensorflow":
        quiet.load_tensorflow(on_gpu=False)
    return embedder.Embedder(source, engine=engine)


def _num_tokens(text: str) -> float:
    """Returns the rough number of tokens of a file, at 6 bytes per token; 0 for a pipe, whose size is unknown."""
    from elmo_tf.corpus import corpora

    expansion = corpora.COMPRESSED.get(os.path.splitext(text)[1], 1)
    return expansion * os.path.getsize(text) / 6 if os.path.isfile(text) else 0


def _neighbors(arguments: argparse.Namespace) -> None:
    from elmo_tf.probes import neighbors

    sentence, word = (text.encode(errors="surrogateescape") for text in (arguments.sentence, arguments.word))
    words = {}
    if arguments.glove is not None:
        words = {"words": neighbors.nearest_words(arguments.glove, arguments.word, arguments.count)}
    uses = neighbors.search(
        _embedder(arguments.model),
        arguments.input,
        sentence,
        word,
        arguments.layers,
        arguments.count,
        arguments.same_word,
    )
    if arguments.json:
        print(json_file.dumps(words | {"uses": [use._asdict() for use in uses]}, ensure_ascii=False))
        return
    if words:
        print("word vectors: " + ", ".join(f"{name} {cosine:.3f}" for name, cosine in words["words"]))
    print(printable(neighbors.as_table(uses), kept="\n"))


def _score(arguments: argparse.Namespace) -> None:
    model = _embedder(arguments.model, arguments.input)
    lines = sentences.read_lines(arguments.input, model.source.tokenizer)
    num_tokens = num_unknown = 0
    while chunk := list(itertools.islice(lines, _LINES_AT_ONCE)):
        for sentence, score in zip(chunk, model.score(chunk), strict=True):
            row = _score_row(sentence, score, arguments.tokens)
            num_tokens, num_unknown = num_tokens + row["num_tokens"], num_unknown + row["num_unknown"]
            print(json_file.dumps(row, ensure_ascii=False))
    if num_unknown:
        counts = f"{num_unknown:,} of {with_count(num_tokens, 'token')} are not in the model's vocabulary"
        advice = "they are scored as <UNK>, too well: compare only sentences with the same num_unknown"
        _log.warning("warning: %s: %s; %s", printable(arguments.input), counts, advice)


def _score_row(sentence: str, score: "Score", with_tokens: bool) -> dict[str, Any]:
    row = {
        "sentence": sentence,
        "num_tokens": len(score.tokens),
        "num_unknown": int(score.unknown.sum()),
        "forward": round(score.forward, 4),
        "backward": round(score.backward, 4),
        "total": round(score.total, 4),
        "mean": round(score.mean, 6),
    }
    if with_tokens:
        row["tokens"] = score.tokens
        row["unknown"] = score.unknown.tolist()
        row["forward_log_probs"] = [round(float(value), 4) for value in score.forward_log_probs]
        row["backward_log_probs"] = [round(float(value), 4) for value in score.backward_log_probs]
    return row


def _surprisal(arguments: argparse.Namespace) -> None:
    staging.check_new_file(arguments.output)
    model = _embedder(arguments.model)
    lines = sentences.read_lines(arguments.input, model.source.tokenizer)
    if not (words := model.surprisal(lines, arguments.context)):
        raise InputError(arguments.input, "no words")
    _warn_of_unspaced(arguments.input, words, model.source.tokenizer)
    stores.write(arguments.output, _as_tsv(words))
    print(f"{arguments.output}: {len(words):,} words, {sum(not word.known for word in words):,} not in the vocabulary")


def _warn_of_unspaced(path: str, words: "list[Surprisal]", tokenizer: str) -> None:
    """Warns if most sentences have no white space, but several tokens, as in Chinese or Thai."""
    of_sentence = [list(group) for _, group in itertools.groupby(words, lambda word: word[:2])]
    alone = [group[0].word.encode() for group in of_sentence if len(group) == 1]
    unspaced = sum(len(tokens) > _TOKENS_OF_A_WORD for tokens in tokenizers.split(alone, tokenizer))
    if 2 * unspaced > len(of_sentence):
        counts = f"{unspaced:,} of {with_count(len(of_sentence), 'sentence')} have no white space and count as one word"
        _log.warning("warning: %s: %s; to get the bits of each word, put spaces between them", printable(path), counts)


def _as_tsv(words: "list[Surprisal]") -> bytes:
    """Returns a table of words, in UTF-8, tab-separated; a word with a quotation mark is quoted.

    The cells of bits and rank of a word without tokens are empty.
    """
    text = io.StringIO()
    rows = (
        [*word[:3], *(f"{bits:.4f}" for bits in word[3:6]), word.rank, str(word.known).lower()]
        if word.forward == word.forward  # not NaN
        else [*word[:3], "", "", "", "", "false"]
        for word in words
    )
    csv.writer(text, "excel-tab", lineterminator="\n").writerows([words[0]._fields, *rows])
    return text.getvalue().encode()


def _fill(arguments: argparse.Namespace) -> None:
    for filled in _embedder(arguments.model).fill(arguments.text, arguments.top, arguments.word):
        print(json_file.dumps(filled._asdict() | {"score": round(filled.score, 6)}, ensure_ascii=False))
