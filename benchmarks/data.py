"""Makes and checks the folder of data sets that other benchmarks read; DATA.md describes it.

    python benchmarks/data.py fetch DATA [FOLDER ...]
    python benchmarks/data.py cut DATA [FOLDER ...]
    python benchmarks/data.py check DATA [FOLDER ...]

`fetch` downloads published files to DATA/originals, `cut` makes the folders from them, and `check` compares the folders
with the sizes and checksums in DATA.md. Without FOLDER, they do so for all.
"""

import argparse
import collections
import difflib
import gzip
import hashlib
import json
import lzma
import pathlib
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks import novels
from elmo_tf.errors import InputError
from elmo_tf.files import compressed, download, intact, stores

PAGE = pathlib.Path(__file__).with_name("DATA.md")
ORIGINALS = "originals"
_TAGS = {f"{position}-{kind}" for position in "BI" for kind in ("PER", "LOC", "ORG")}
_SAME_TAGS = 0.7  # of a sentence's words, for PropBank's annotation of it
_SQUAD_TRAIN = 44  # articles
_SQUAD_DEV = [
    "Super_Bowl_50",
    "Warsaw",
    "Teacher",
    "Victoria_(Australia)",
    "Oxygen",
    "1973_oil_crisis",
    "Apollo_program",
    "European_Union_law",
    "Packet_switching",
    "Black_Death",
    "Geology",
    "Newcastle_upon_Tyne",
    "Genghis_Khan",
    "Immune_system",
    "Civil_disobedience",
    "Construction",
    "Harvard_University",
    "Jacksonville,_Florida",
    "University_of_Chicago",
    "Prime_number",
    "Islamism",
    "Imperialism",
    "French_and_Indian_War",
    "Force",
]
_WORDS = 12_000  # the most frequent, of which GloVe has 11,925


class Listed(NamedTuple):
    """A row of a table of DATA.md."""

    name: str  # folder/file
    size: int | None  # bytes; None: not known
    sha256: str | None
    url: str | None  # of an original


def listed(page: pathlib.Path) -> tuple[list[Listed], list[Listed]]:
    """Returns the files of the folders, with sizes and checksums of their uncompressed contents, and the originals."""
    rows = []
    for line in page.read_text("utf-8").splitlines():
        if line.startswith("| `"):
            name, size, sha256, *url = (cell.strip(" `") for cell in line.strip("|").split(" | "))
            known_size = None if size == "-" else int(size.replace(",", ""))
            rows.append(Listed(name, known_size, None if sha256 == "-" else sha256, url[0] if url else None))
    return [row for row in rows if row.url is None], [row for row in rows if row.url]


def check(data: pathlib.Path, files: Iterable[Listed]) -> Iterator[str]:
    """Yields a sentence for each file that is missing or differs."""
    for file in files:
        try:
            if problem := _difference(_content(data / file.name), file):
                yield f"{file.name}: {problem}"
        except InputError as error:
            yield f"{file.name}: {error.problem}"


def fetch(data: pathlib.Path, originals: Iterable[Listed]) -> Iterator[str]:
    """Downloads the originals that are not there; yields a sentence for each that cannot be had or differs."""
    for original in originals:
        path = data / ORIGINALS / original.name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            if path.exists():
                intact.check(path, original.size, original.sha256)
            else:
                download.download(original.url, original.size, original.sha256, path)
        except InputError as error:
            yield str(error)


def cut(data: pathlib.Path, files: Iterable[Listed]) -> Iterator[str]:
    """Makes the files that are not there; yields a sentence for each that cannot be made or differs."""
    by_folder = collections.defaultdict(list)
    for file in files:
        if (data / file.name).exists():
            yield from check(data, [file])
        else:
            by_folder[file.name.partition("/")[0]].append(file)
    for folder, missing in by_folder.items():
        try:
            contents = RULES[folder](data / ORIGINALS) if folder in RULES else {}
        except InputError as error:
            yield f"{folder}: {error}; run fetch, or see DATA.md"
            continue
        for file in missing:
            content = contents.get(file.name.partition("/")[2])
            if content is None:
                yield f"{file.name}: its original is missing, or no rule makes it; run fetch, or see DATA.md"
            elif problem := _difference(content, file):
                yield f"{file.name}: not written, because what the originals give differs: {problem}"
            else:
                (data / folder).mkdir(exist_ok=True)
                stores.write(data / file.name, _packed(file.name, content))


def _content(path: pathlib.Path) -> bytes:
    """Returns the uncompressed contents of a file."""
    content = intact.read(path)
    unpack = {".xz": lzma.decompress, ".gz": gzip.decompress}.get(path.suffix, bytes)
    try:
        return unpack(content)
    except compressed.DAMAGED as error:
        raise InputError(str(path), f"cannot be uncompressed ({error})") from None


def _packed(name: str, content: bytes) -> bytes:
    if name.endswith(".gz"):
        return gzip.compress(content, mtime=0)
    return lzma.compress(content) if name.endswith(".xz") else content


def _difference(content: bytes, file: Listed) -> str | None:
    if len(content) != file.size:
        return f"it has {len(content):,} bytes uncompressed, but should have {file.size:,}"
    sha256 = hashlib.sha256(content).hexdigest()
    return None if sha256 == file.sha256 else f"its SHA-256 is {sha256}, but should be {file.sha256}"


# How the files of each folder are made: functions of the folder of originals.

Contents = dict[str, bytes]


def _copied(folder: str, **renamed: str) -> Callable[[pathlib.Path], Contents]:
    """Returns a rule that takes the originals of a folder as they are, under their names or others."""

    def rule(originals: pathlib.Path) -> Contents:
        names = [path.name for path in sorted((originals / folder).glob("*")) if path.is_file()]
        return {renamed.get(name, name): _content(originals / folder / name) for name in names}

    return rule


def _member(archive: pathlib.Path, name: str) -> bytes:
    """Returns a file of a ZIP archive."""
    intact.check_regular(archive)
    try:
        with zipfile.ZipFile(archive) as members:
            return members.read(name)
    except (KeyError, zipfile.BadZipFile, OSError) as error:
        raise InputError(str(archive), f"cannot be read ({error})") from None


def _folder(path: pathlib.Path) -> pathlib.Path:
    """Returns the path of a folder; an error without it, because its rule would then find no files."""
    if not path.is_dir():
        raise InputError(str(path), "no such folder")
    return path


def _text(path: pathlib.Path) -> str:
    return _content(path).decode()


def _uner(folder: str, name: str, *parts: str) -> Callable[[pathlib.Path], Contents]:
    """Returns a rule for words and tags of the second and third column; other tags than the published ones are O."""

    def rule(originals: pathlib.Path) -> Contents:
        contents = {}
        for part in parts:
            lines = _text(originals / folder / f"{name}-ud-{part}.iob2").split("\n")
            rows = (line.split("\t") for line in lines if not line.startswith("#"))
            tagged = (f"{row[1]}\t{row[2] if row[2] in _TAGS else 'O'}" if len(row) > 1 else "" for row in rows)
            contents[f"{part}.conll.xz"] = "\n".join(tagged).encode()
        return contents

    return rule


def _nerkor(originals: pathlib.Path) -> Contents:
    """Words and tags of the news, file after file in the order of their names."""
    contents = {}
    for part in ("train", "dev", "test"):
        folder = _folder(originals / "ner_hungarian/NYTK-NerKor/data") / {"dev": "devel"}.get(part, part) / "news"
        lines = []
        for path in sorted(folder.glob("*.conllup")):
            names, *rows = _text(path).strip().split("\n")
            columns = [names.split().index(name) - 3 for name in ("FORM", "CONLL:NER")]  # after "# global.columns ="
            cells = (row.split("\t") for row in rows if not row.startswith("#"))
            lines += ["\t".join(row[column] for column in columns) if len(row) > 1 else "" for row in cells]
            lines.append("")
        contents[f"{part}.conll.xz"] = "\n".join(lines).encode()
    return contents


def _sst5(originals: pathlib.Path) -> Contents:
    archive = originals / "sst5" / "trainDevTestTrees_PTB.zip"
    return {f"{part}.txt.xz": _member(archive, f"trees/{part}.txt") for part in ("train", "dev")}


def _polarity(originals: pathlib.Path) -> Contents:
    archive = originals / "sentence_polarity" / "sentence_polarity.zip"
    names = ("rt-polarity.pos", "rt-polarity.neg")
    return {name: _member(archive, f"sentence_polarity/{name}") for name in names}


def _glove(originals: pathlib.Path) -> Contents:
    """The vectors of the most frequent words, in the order of their frequency."""
    words = _text(originals / "glove_small" / "20k.txt").split()[:_WORDS]
    vectors = _member(originals / "glove_small" / "glove.twitter.27B.zip", "glove.twitter.27B.25d.txt")
    lines = {line.partition(b" ")[0].decode(): line for line in vectors.split(b"\n")}
    content = b"".join(lines[word] + b"\n" for word in words if word in lines)
    return {"glove.twitter.27B.25d.12k.txt": content}


def _squad(originals: pathlib.Path) -> Contents:
    """The first articles of the training data, and half of the dev articles."""
    train, dev = (json.loads(_content(originals / "squad" / f"{part}-v1.1.json")) for part in ("train", "dev"))
    parts = {"train-part": train["data"][:_SQUAD_TRAIN]}
    parts["dev-half"] = [article for article in dev["data"] if article["title"] in _SQUAD_DEV]
    return {
        f"{name}.json.xz": json.dumps({"data": articles, "version": "1.1"}, sort_keys=name == "train-part").encode()
        for name, articles in parts.items()
    }


def _ontogum(originals: pathlib.Path) -> Contents:
    """GUM's documents in CoNLL-2012's columns: words, sentences and speakers of CoNLL-U, clusters of CoNLL."""
    gum = originals / "ontogum" / "gum"
    sections = re.split("^## ", _text(gum / "splits.md"), flags=re.MULTILINE)
    contents = {}
    for part in ("train", "dev"):
        names = re.findall(r"GUM_\w+", next(section for section in sections if section.startswith(f"{part}\n")))
        names = sorted(name for name in names if "_reddit_" not in name)  # whose words are not published
        contents[f"{part}.conll.xz"] = "".join(
            _gum_document(gum / "coref" / "ontogum", name) for name in names
        ).encode()
    return contents


def _gum_document(ontogum: pathlib.Path, name: str) -> str:
    rows = (line.split("\t") for line in _text(ontogum / "conll" / f"{name}.conll").split("\n") if "\t" in line)
    # GUM writes `(1(2)`, CoNLL-2012 `(1|(2)`.
    clusters = (re.sub(r"(?<=\))(?=[(\d])|(?<=\d)(?=\()", "|", row[2].replace("_", "-")) for row in rows)
    lines = [f"#begin document ({name}); part 000"]
    for comments, words in _sentences(_text(ontogum / "conllu" / f"{name}.conllu")):
        speaker = comments.get("speaker", "-")
        for number, row in enumerate(words):
            # A bar, which divides clusters, leaves an empty word.
            cells = (name, "0", str(number), row[1].replace("|", ""), *"-----", speaker, "-", next(clusters))
            lines.append("\t".join(cells))
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


def _sentences(conllu: str) -> Iterator[tuple[dict[str, str], list[list[str]]]]:
    """Yields the comments, by their names, and the rows of the words of each sentence of CoNLL-U."""
    for block in conllu.strip().split("\n\n"):
        lines = block.split("\n")
        comments = dict(line[2:].split(" = ", 1) for line in lines if line.startswith("# ") and " = " in line)
        rows = (line.split("\t") for line in lines if not line.startswith("#"))
        yield comments, [row for row in rows if row[0].isdecimal()]


def _propbank(originals: pathlib.Path) -> Contents:
    """PropBank's annotation of the words of Universal Dependencies, for the sentences where both agree.

    The sentences of a document are aligned by their numbers of words, and left out if too few parts of speech agree.
    """
    contents = {}
    for part, ending in (("train", ".jsonl.xz"), ("dev", ".jsonl")):
        documents = collections.defaultdict(list)
        for comments, words in _sentences(_text(originals / "ud_ewt" / f"en_ewt-ud-{part}.conllu")):
            name, _, _ = comments["sent_id"].rpartition("-")
            documents[name].append((comments["sent_id"], words))
        lines = []
        for name, sentences in documents.items():
            annotated = _skeleton(originals / "propbank_ewt" / "propbank-release" / "data/google/ewt", name)
            lengths = ([len(words) for _, words in sentences], [len(rows) for rows in annotated])
            for start, other, size in difflib.SequenceMatcher(None, *lengths, autojunk=False).get_matching_blocks():
                pairs = zip(sentences[start : start + size], annotated[other : other + size], strict=True)
                lines += [_frames(*sentence, rows) for sentence, rows in pairs if _agree(sentence[1], rows)]
        contents[f"ewt_srl_{part}{ending}"] = ("\n".join(lines) + "\n").encode()
    return contents


def _skeleton(folder: pathlib.Path, document: str) -> list[list[list[str]]]:
    """Returns the rows of each sentence of a document without words; none if PropBank does not have the document."""
    genre, _, name = document.partition("-")
    paths = list((_folder(folder) / genre).glob(f"*/{name}.xml.gold_skel"))
    if not paths:
        return []
    blocks = _text(paths[0]).split("\n\n")
    return [[line.split() for line in block.split("\n") if line.strip()] for block in blocks if block.strip()]


def _agree(words: list[list[str]], rows: list[list[str]]) -> bool:
    return sum(word[4] == row[4] for word, row in zip(words, rows, strict=True)) >= _SAME_TAGS * len(rows)


def _frames(name: str, words: list[list[str]], rows: list[list[str]]) -> str:
    predicates = [(position, row[7]) for position, row in enumerate(rows) if row[7] != "-"]
    frames = [
        {"pred": position, "roleset": roleset, "tags": _spans(row[8 + number] for row in rows)}
        for number, (position, roleset) in enumerate(predicates)
    ]
    return json.dumps({"id": name, "words": [word[1] for word in words], "frames": frames}, ensure_ascii=False)


def _spans(column: Iterable[str]) -> list[str]:
    """Returns the IOB2 tags of a column such as `(ARG0*`, `*`, `*)`."""
    tags, inside = [], ""
    for cell in column:
        if begins := re.match(r"\(([^*()]+)\*", cell):
            inside = begins[1]
        tags.append(f"{'B' if begins else 'I'}-{inside}" if inside else "O")
        if cell.endswith(")"):
            inside = ""
    return tags


def _treebank(folder: str, test: str, *train: str) -> Callable[[pathlib.Path], Contents]:
    """Returns a rule that takes a treebank's test part as it is, and the parts to train on one after another."""

    def rule(originals: pathlib.Path) -> Contents:
        parts = [_content(originals / folder / name) for name in train]
        return {"train.conllu.xz": b"".join(parts), "test.conllu": _content(originals / folder / test)}

    return rule


def _eltec(language: str, name: str) -> Callable[[pathlib.Path], Contents]:
    """Returns the rule of a collection of the European Literary Text Collection."""
    folder = f"novels_{language}/ELTeC-{name}/level1"
    return lambda originals: novels.divided(novels.eltec(_folder(originals / folder)))


def _chinese(originals: pathlib.Path) -> Contents:
    return novels.divided(novels.chinese(_folder(originals / "novels_chinese/chinese-novel/resources")))


_UD_NAMES = {"en_ewt-ud-train.conllu": "en_ewt-ud-train.conllu.xz"}
RULES: dict[str, Callable[[pathlib.Path], Contents]] = {
    "uner_ewt": _uner("uner_ewt", "en_ewt", "train", "dev"),
    "sst5": _sst5,
    "snli": _copied("snli", **{"train.tsv": "cad_train.tsv.xz"}),
    "propbank_ewt": _propbank,
    "squad": _squad,
    "ontogum": _ontogum,
    "wikigold": _copied("wikigold"),
    "wnut17": _copied("wnut17"),
    "sentence_polarity": _polarity,
    "glove_small": _glove,
    "ud_ewt": _copied("ud_ewt", **_UD_NAMES),
    "multi30k": _copied("multi30k"),
    "ner_chinese": _uner("ner_chinese", "zh_gsdsimp", "train", "dev", "test"),
    "ner_hungarian": _nerkor,
    "novels_chinese": _chinese,
    "novels_french": _eltec("french", "fra"),
    "novels_german": _eltec("german", "deu"),
    "novels_hungarian": _eltec("hungarian", "hun"),
    "novels_polish": _eltec("polish", "pol"),
    "novels_slovenian": _eltec("slovenian", "slv"),
    "novels_ukrainian": _eltec("ukrainian", "ukr"),
    "ud_chinese": _treebank("ud_chinese", "zh_gsdsimp-ud-test.conllu", "zh_gsdsimp-ud-dev.conllu"),
    "ud_french": _treebank("ud_french", "fr_gsd-ud-test.conllu", "fr_gsd-ud-dev.conllu"),
    "ud_german": _treebank("ud_german", "de_gsd-ud-test.conllu", "de_gsd-ud-dev.conllu", "de_pud-ud-test.conllu"),
    "ud_hungarian": _treebank(
        "ud_hungarian", "hu_szeged-ud-test.conllu", "hu_szeged-ud-train.conllu", "hu_szeged-ud-dev.conllu"
    ),
    "ud_polish": _treebank("ud_polish", "pl_pdb-ud-test.conllu", "pl_pdb-ud-dev.conllu"),
    "ud_slovenian": _treebank("ud_slovenian", "sl_ssj-ud-test.conllu", "sl_ssj-ud-dev.conllu"),
    "ud_ukrainian": _treebank("ud_ukrainian", "uk_iu-ud-test.conllu", "uk_iu-ud-dev.conllu"),
}


def main(argv: list[str] | None = None, page: pathlib.Path = PAGE) -> None:
    """Runs the command; exits with status 1 if anything is missing or differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    files, originals = listed(page)
    folders = list(dict.fromkeys(file.name.partition("/")[0] for file in files))
    parser.add_argument("action", choices=("check", "fetch", "cut"))
    parser.add_argument("data", type=pathlib.Path, metavar="DATA", help="the folder of data sets")
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help=f"{', '.join(folders)} (all)")
    arguments = parser.parse_args(argv)
    if unknown := set(arguments.folders) - set(folders):
        parser.error(f"FOLDER: expected one of {', '.join(folders)}, found {', '.join(sorted(unknown))}")
    act, rows = {"check": (check, files), "fetch": (fetch, originals), "cut": (cut, files)}[arguments.action]
    chosen = [row for row in rows if row.name.partition("/")[0] in (arguments.folders or folders)]
    problems = 0
    for problem in act(arguments.data, chosen):
        print(problem, file=sys.stderr)
        problems += 1
    if problems:
        sys.exit(1)
    listed_files = f"all {len(chosen)} files are as listed" if chosen else "nothing to download; see DATA.md"
    print(f"{arguments.action}: {listed_files}")


if __name__ == "__main__":
    main()
