"""How the tokenizer `penn` agrees with others, and whether it leaves tokenized text as it is.

    python benchmarks/splitting.py --data en_ewt-ud-train.conllu.xz [--nltk]
    python benchmarks/splitting.py --data ud_hungarian/test.conllu --tokenizer unicode
    python benchmarks/splitting.py --input tokenized.txt.xz --lines 10000

With `--data`, CoNLL-U with `# text` (Universal Dependencies), each sentence's text is split and compared with the words
that its annotators chose, or with `--nltk` with NLTK's NLTKWordTokenizer (`pip install nltk`). Prints the F1 of words
with the same first and last character, the sentences that agree, and the kinds of difference with examples. With
`--input`, one tokenized sentence per line, prints how many lines change, and how.
"""

import argparse
import collections
import difflib
import itertools
import pathlib
import re
import sys
from collections.abc import Iterator

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from elmo_tf.annotated import numbered_lines
from elmo_tf.text import penn, tokenizers

# The kind of a difference: the first whose pattern occurs in the text.
KINDS = {
    "addresses and file names": r"@|://|www\.|\w\.[a-z]{2,4}\b",
    "marks in a row, smileys": r"^\W+$",
    "hyphens": r"[-\u2013]",
    "contractions": r"(?i)['\u2019`]|cannot|gonna|wanna|gotta|dunno",
    "full stops": r"\.",
    "slashes": r"/",
    "digits and units": r"\d",
    "other": "",
}


def sentences(path: pathlib.Path) -> Iterator[tuple[str, list[str]]]:
    """Yields the text of each sentence and its words; a contraction is its parts if they spell it."""
    for block in numbered_lines.blocks(path):
        text = next(line.text.removeprefix("# text = ") for line in block if line.text.startswith("# text = "))
        rows = [line.text.split("\t")[:2] for line in block if line.text[0].isdigit()]
        forms = {number: form for number, form in rows if "." not in number}
        words: list[str] = []
        last = 0
        for number, form in forms.items():
            first, _, end = number.partition("-")
            if end:
                parts = [forms[str(part)] for part in range(int(first), int(end) + 1)]
                words += parts if "".join(parts) == form else [form]
                last = int(end)
            elif int(first) > last:
                words.append(form)
        yield text, words


def spans(words: list[str]) -> list[tuple[int, int]]:
    """Returns the first character and the end of each word, among characters that are not white space."""
    return list(itertools.pairwise(itertools.accumulate((len("".join(word.split())) for word in words), initial=0)))


def surface(texts: list[str], tokenizer: str) -> list[list[str]]:
    """Returns the words of a tokenizer, as they are written in each text."""
    words_of_each = tokenizers.words_of_each(texts, tokenizer)
    return [[text[word.start : word.end] for word in words] for text, words in zip(texts, words_of_each, strict=True)]


def compare(pairs: list[tuple[list[str], list[str]]]) -> None:
    """Prints how far two lists of words of each sentence agree."""
    same = total = equal = 0
    kinds: dict[str, collections.Counter] = {kind: collections.Counter() for kind in KINDS}
    for ours, theirs in pairs:
        same += 2 * len({*spans(ours)} & {*spans(theirs)})
        total += len(ours) + len(theirs)
        equal += ours == theirs
        for tag, *bounds in difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
            if tag != "equal":
                our_part, their_part = " ".join(ours[slice(*bounds[:2])]), " ".join(theirs[slice(*bounds[2:])])
                kind = next(kind for kind, pattern in KINDS.items() if re.search(pattern, our_part.replace(" ", "")))
                kinds[kind][f"{our_part!r} / {their_part!r}"] += 1
    print(f"{len(pairs):,} sentences: F1 of words {same / total:.2%}, the same words {equal / len(pairs):.2%}")
    for kind, differences in sorted(kinds.items(), key=lambda row: -row[1].total()):
        if not differences:
            continue
        examples = ", ".join(example for example, _ in differences.most_common(6))
        print(f"{differences.total():6,}  {kind}: {examples}")


def changed(path: pathlib.Path, count: int) -> None:
    """Prints how many lines of tokenized text are not what they were after splitting."""
    lines = [line.text.split(" ") for line in itertools.islice(numbered_lines.lines(path), count)]
    pairs = [(penn.split(" ".join(words)), words) for words in lines]
    pairs = [pair for pair in pairs if pair[0] != pair[1]]
    print(f"{len(pairs):,} of {len(lines):,} lines change")
    if pairs:
        compare(pairs)


def main() -> None:
    """Compares as the options say."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=pathlib.Path, metavar="FILE", help="CoNLL-U with texts")
    source.add_argument("--input", type=pathlib.Path, metavar="FILE", help="one tokenized sentence per line")
    parser.add_argument("--nltk", action="store_true", help="compare with NLTK instead of the annotated words")
    parser.add_argument("--tokenizer", default="penn", choices=("penn", "unicode"), help="of --data (penn)")
    parser.add_argument("--lines", type=int, default=10_000, help="of --input, from its beginning (10,000)")
    arguments = parser.parse_args()
    if arguments.input:
        changed(arguments.input, arguments.lines)
        return
    annotated = list(sentences(arguments.data))
    if arguments.nltk:
        from nltk.tokenize import NLTKWordTokenizer  # noqa: PLC0415 - only for this comparison

        spans_of = NLTKWordTokenizer().span_tokenize
        annotated = [(text, [text[start:end] for start, end in spans_of(text)]) for text, _ in annotated]
    ours = surface([text for text, _ in annotated], arguments.tokenizer)
    compare([(split, words) for split, (_, words) in zip(ours, annotated, strict=True)])


if __name__ == "__main__":
    main()
