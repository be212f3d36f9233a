"""The folder of data sets: what DATA.md lists, what is fetched, and the rules, on small originals."""

import hashlib
import json
import lzma
import pathlib
import zipfile

import pytest

from benchmarks import data
from tests.files.file_server import serve


def row(name: str, content: bytes, *url: str) -> str:
    cells = (f"`{name}`", f"{len(content):,}", f"`{hashlib.sha256(content).hexdigest()}`", *url)
    return f"| {' | '.join(cells)} |"


@pytest.fixture
def run(tmp_path, capsys):
    """Runs the command with a page of the given rows; returns its exit status and the lines that it printed."""

    def run(action: str, *rows: str, folders: tuple[str, ...] = ()) -> tuple[int, list[str]]:
        page = tmp_path / "page.md"
        page.write_text("# Files\n\n| file | bytes | SHA-256 |\n|---|---|---|\n" + "\n".join(rows) + "\n")
        status = 0
        try:
            data.main([action, str(tmp_path), *folders], page)
        except SystemExit as exit_:
            status = exit_.code
        printed = capsys.readouterr()
        return status, (printed.err or printed.out).splitlines()

    return run


def written(path: pathlib.Path, content: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def test_the_page_lists_every_folder_that_a_rule_makes_and_only_originals_of_these():
    files, originals = data.listed(data.PAGE)
    folders = {file.name.partition("/")[0] for file in files}
    assert folders == data.RULES.keys() | {"semcor30"}
    assert {original.name.partition("/")[0] for original in originals} < folders
    assert all(len(file.sha256) == 64 and file.size > 0 for file in files)
    assert all(original.url.startswith("https://") for original in originals)


def test_check_says_what_is_missing_and_what_differs(tmp_path, run):
    written(tmp_path / "a" / "same.xz", lzma.compress(b"same"))
    written(tmp_path / "a" / "short", "sho")
    written(tmp_path / "b" / "other", "OTHER")
    written(tmp_path / "b" / "damaged.xz", lzma.compress(b"same")[:-1])
    rows = [row("a/same.xz", b"same"), row("a/gone", b"gone"), row("a/short", b"short"), row("b/other", b"other")]
    digests = [hashlib.sha256(text).hexdigest() for text in (b"OTHER", b"other")]
    assert run("check", *rows, row("b/damaged.xz", b"same")) == (
        1,
        [
            "a/gone: no such file",
            "a/short: it has 3 bytes uncompressed, but should have 5",
            f"b/other: its SHA-256 is {digests[0]}, but should be {digests[1]}",
            "b/damaged.xz: cannot be uncompressed (Compressed data ended before the end-of-stream marker was reached)",
        ],
    )
    assert run("check", rows[0], rows[3], folders=("a",)) == (0, ["check: all 1 files are as listed"])
    status, lines = run("check", rows[0], folders=("c",))
    assert status == 2 and lines[-1].endswith("FOLDER: expected one of a, found c")


def test_fetch_downloads_what_is_not_there_and_checks_it(tmp_path, run):
    with serve(b"text") as server:
        base = server.url.removesuffix("corpus.tar.gz")
        good, bad = row("wikigold/good", b"text", base + "good"), row("wikigold/bad", b"else", base + "bad")
        unknown = f"| `wikigold/unknown` | - | - | {base}unknown |"
        file = row("wikigold/x", b"x")
        status, (problem,) = run("fetch", file, good, unknown, bad)
        assert status == 1 and problem.startswith(f"{base}bad: ") and problem.endswith("; the file was removed")
        originals = tmp_path / "originals" / "wikigold"
        assert {path.name: path.read_bytes() for path in originals.iterdir()} == {"good": b"text", "unknown": b"text"}
        requests = len(server.ranges)
        assert run("fetch", file, good, unknown) == (0, ["fetch: all 2 files are as listed"])
        assert len(server.ranges) == requests
        written(originals / "good", "changed")
        status, (problem,) = run("fetch", file, good)
        assert status == 1 and problem == f"{originals / 'good'}: it has 7 bytes, but should have 4"


def test_cut_writes_only_what_is_as_listed_and_leaves_files_that_are_there(tmp_path, run):
    for name in ("plain", "packed.gz", "other", "present"):
        written(tmp_path / "originals" / "multi30k" / name, "text")
    (tmp_path / "originals" / "multi30k" / "packed.gz").write_bytes(data._packed("packed.gz", b"text"))
    written(tmp_path / "multi30k" / "present", "mine")
    names = ("plain", "packed.gz", "present")
    rows = [*(row(f"multi30k/{name}", b"text") for name in names), row("multi30k/other", b"else")]
    status, lines = run("cut", *rows, row("semcor30/s", b"s"), row("sst5/train.txt.xz", b"()"))
    assert status == 1
    assert [line.partition(" SHA")[0] for line in lines] == [
        "multi30k/present: its",
        "multi30k/other: not written, because what the originals give differs: its",
        "semcor30/s: its original is missing, or no rule makes it; run fetch, or see DATA.md",
        f"sst5: {tmp_path}/originals/sst5/trainDevTestTrees_PTB.zip: no such file; run fetch, or see DATA.md",
    ]
    assert (tmp_path / "multi30k" / "present").read_text() == "mine"
    assert run("check", rows[0], rows[1]) == (0, ["check: all 2 files are as listed"])
    assert not (tmp_path / "multi30k" / "other").exists()


@pytest.mark.parametrize(
    ("file", "missing"),
    [
        ("novels_french/train.txt.xz", "novels_french/ELTeC-fra/level1"),
        ("novels_chinese/train.txt.xz", "novels_chinese/chinese-novel/resources"),
        ("ner_hungarian/dev.conll.xz", "ner_hungarian/NYTK-NerKor/data"),
    ],
)
def test_a_repository_that_is_not_cloned_is_named(tmp_path, run, file, missing):
    folder = file.partition("/")[0]
    problem = f"{folder}: {tmp_path}/originals/{missing}: no such folder; run fetch, or see DATA.md"
    assert run("cut", row(file, b"text")) == (1, [problem])
    assert run("fetch", row(file, b"text")) == (0, ["fetch: nothing to download; see DATA.md"])


def test_draft_tags_and_comments_of_universal_ner_are_left_out(tmp_path):
    lines = ["# text = Al ran", "1\tAl\tB-PER\t-\ta", "2\tran\tB-DRAFT\t-\ta", "", ""]
    for part in ("train", "dev"):
        written(tmp_path / "uner_ewt" / f"en_ewt-ud-{part}.iob2", "\n".join(lines))
    assert data.RULES["uner_ewt"](tmp_path)["dev.conll.xz"] == b"Al\tB-PER\nran\tO\n\n"


def test_the_news_of_nerkor_come_file_after_file(tmp_path):
    columns = "# global.columns = FORM LEMMA CONLL:NER EMMORPH:LEMMA\n"
    folder = tmp_path / "ner_hungarian/NYTK-NerKor/data/devel"
    written(folder / "news" / "b.conllup", f"{columns}Ede\tEde\tB-PER\tEde\n\nfut\tfut\tO\tfut\n\n")
    written(folder / "news" / "a.conllup", f"{columns}#\n.\t.\tO\t.\n")
    written(folder / "web" / "c.conllup", f"{columns}x\tx\tO\tx\n")
    assert data.RULES["ner_hungarian"](tmp_path)["dev.conll.xz"] == b".\tO\n\nEde\tB-PER\n\nfut\tO\n"


def test_members_of_archives_are_taken(tmp_path):
    members = {
        "sst5/trainDevTestTrees_PTB.zip": {"trees/train.txt": "(2 a)\n", "trees/dev.txt": "(3 b)\n"},
        "sentence_polarity/sentence_polarity.zip": {
            f"sentence_polarity/rt-polarity.{kind}": kind for kind in ("pos", "neg")
        },
        "glove_small/glove.twitter.27B.zip": {"glove.twitter.27B.25d.txt": "rt 1 2\nof 3 4\nthe 5 6\n"},
    }
    for name, texts in members.items():
        path = tmp_path / name
        path.parent.mkdir()
        with zipfile.ZipFile(path, "w") as archive:
            for member, text in texts.items():
                archive.writestr(member, text)
    written(tmp_path / "glove_small" / "20k.txt", "the\nepinions\nof\n")
    assert data.RULES["sst5"](tmp_path) == {"train.txt.xz": b"(2 a)\n", "dev.txt.xz": b"(3 b)\n"}
    assert data.RULES["sentence_polarity"](tmp_path) == {"rt-polarity.pos": b"pos", "rt-polarity.neg": b"neg"}
    assert data.RULES["glove_small"](tmp_path) == {"glove.twitter.27B.25d.12k.txt": b"the 5 6\nof 3 4\n"}


def test_squad_has_the_first_articles_of_train_and_the_named_ones_of_dev(tmp_path):
    for part, titles in {"train": map(str, range(50)), "dev": ["Normans", "Warsaw", "Huguenot", "Force"]}.items():
        articles = [{"title": title, "paragraphs": []} for title in titles]
        written(tmp_path / "squad" / f"{part}-v1.1.json", json.dumps({"data": articles, "version": "1.1"}))
    contents = data.RULES["squad"](tmp_path)
    train, dev = (contents[f"{name}.json.xz"] for name in ("train-part", "dev-half"))
    assert train.startswith(b'{"data": [{"paragraphs": [], "title": "0"}, ')
    assert [article["title"] for article in json.loads(train)["data"]] == [str(number) for number in range(44)]
    two = '{"title": "Warsaw", "paragraphs": []}, {"title": "Force", "paragraphs": []}'
    assert dev.decode() == f'{{"data": [{two}], "version": "1.1"}}'


def test_ontogum_has_sentences_speakers_and_divided_clusters(tmp_path):
    gum = tmp_path / "ontogum" / "gum"
    written(gum / "splits.md", "## dev\n\n  * GUM_b\n  * GUM_reddit_c\n\n## train\n\n  * GUM_b\n")
    conll = ["# begin document", "0\tYour\t(1(2)", "1\tcat\t1)", "2\t|\t_", "3\tPurrs\t(3)(1)", ""]
    written(gum / "coref/ontogum/conll/GUM_b.conll", "\n".join(conll))
    words = ["1\tYour", "2-3\tcat|", "2\tcat", "3\t|"]
    conllu = ["# speaker = Ann", *words, "", "# sent_id = 2", "1\tPurrs", "", ""]
    written(gum / "coref/ontogum/conllu/GUM_b.conllu", "\n".join(conllu))
    dashes = "\t".join("-----")
    assert data.RULES["ontogum"](tmp_path)["dev.conll.xz"].decode().splitlines() == [
        "#begin document (GUM_b); part 000",
        f"GUM_b\t0\t0\tYour\t{dashes}\tAnn\t-\t(1|(2)",
        f"GUM_b\t0\t1\tcat\t{dashes}\tAnn\t-\t1)",
        f"GUM_b\t0\t2\t\t{dashes}\tAnn\t-\t-",
        "",
        f"GUM_b\t0\t0\tPurrs\t{dashes}\t-\t-\t(3)|(1)",
        "",
        "#end document",
    ]


def test_propbanks_frames_get_the_words_of_sentences_that_agree(tmp_path):
    def sentence(number: int, *words: str) -> str:
        rows = [f"{place}\t{word}\t_\t_\t{word[:1].upper()}" for place, word in enumerate(words, 1)]
        return "\n".join([f"# sent_id = weblog-a-{number:04d}", *rows, "", ""])

    text = sentence(1, "cats", "chase", "red", "mice") + sentence(2, "really") + sentence(3, "no", "way", "at", "all")
    for part in ("train", "dev"):
        written(tmp_path / "ud_ewt" / f"en_ewt-ud-{part}.conllu", text)
    rows = [
        ["x 0 0 [WORD] C * - - (ARG0*)", "x 0 1 [WORD] C * chase chase.01 (V*)", "x 0 2 [WORD] R * - - (ARG1*"],
        ["x 0 3 [WORD] M * - - *)"],
    ]
    disagree = [f"x 1 {place} [WORD] Z * - -" for place in range(4)]
    skeleton = "\n".join([*rows[0], *rows[1], "", *disagree, "", ""])
    written(tmp_path / "propbank_ewt/propbank-release/data/google/ewt/weblog/00/a.xml.gold_skel", skeleton)
    (line,) = data.RULES["propbank_ewt"](tmp_path)["ewt_srl_dev.jsonl"].decode().splitlines()
    assert json.loads(line) == {
        "id": "weblog-a-0001",
        "words": ["cats", "chase", "red", "mice"],
        "frames": [{"pred": 1, "roleset": "chase.01", "tags": ["B-ARG0", "B-V", "B-ARG1", "I-ARG1"]}],
    }
