"""The pages: their commands are ones that the command line knows, and their programs run as they stand."""

import ast
import gzip
import os
import pathlib
import re
import runpy
import shlex
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

import elmo_tf
import elmo_tf.allennlp
import elmo_tf.beam
import elmo_tf.tasks
from elmo_tf import cli, config
from elmo_tf.cli import jobs
from elmo_tf.published import models
from elmo_tf.records import record_folder
from elmo_tf.savedmodel import verification
from tests import checks
from tests.helpers import MICRO_CONFIG, ROOT, slow, write_records
from tests.published import published_files
from tests.tasks.small import write_untrained

pytestmark = pytest.mark.usefixtures("loaded_once")
FOLDERS = (".", "docs", "savedmodels", "pipelines", "benchmarks")
YOUR_DATA = (ROOT / "docs" / "your-data.md").read_text("utf-8")
PAGES = sorted(str(page.relative_to(ROOT)) for folder in FOLDERS for page in (ROOT / folder).glob("*.md"))


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


def commands(page: str) -> list[list[str]]:
    lines = "".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    calls = [line for line in lines if line.startswith("elmo-tf ")]
    return [shlex.split(line.partition(" > ")[0], comments=True)[1:] for line in calls]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)])
def test_the_command_line_knows_each_command_of_a_page(page):
    for command in commands(page):
        if command[0] in ("preprocess", "embed"):
            jobs.parsed(command[0], command[1:])
        else:
            cli._parser().parse_args(command)


def test_every_program_on_a_page_is_python():
    programs = {page: blocks(page, "python") for page in PAGES}
    assert len(programs["README.md"]) == 2 and sum(len(commands(page)) for page in PAGES) > 40
    for page, sources in programs.items():
        for program in sources:
            compile(program, page, "exec")


def test_every_link_of_a_page_leads_to_a_file_and_a_heading_and_no_merge_is_unfinished():
    for page in PAGES:
        assert not re.search("^(<<<<<<<|>>>>>>>) ", (ROOT / page).read_text(), re.MULTILINE), page
        for path, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", (ROOT / page).read_text()):
            target = (ROOT / page).parent / path if path else ROOT / page
            assert target.exists(), f"{page}: {path}"
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE) if anchor else []
            names = [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]
            assert not anchor or anchor in names, f"{page}: {path}#{anchor}"


def test_the_page_of_settings_is_made_from_the_configuration(capsys):
    runpy.run_path(ROOT / "docs" / "settings.py", run_name="__main__")
    page = capsys.readouterr().out
    assert page == (ROOT / "docs" / "settings.md").read_text(), "run: python docs/settings.py > docs/settings.md"
    described = re.findall(r"^\| `(\S+)` \| [^|]+ \| [^|]{10,} \|$", page, re.MULTILINE)
    assert described == list(config.keys())


def test_the_site_lists_every_page_and_its_reference_every_public_name():
    cards = [str(card.relative_to(ROOT)) for card in (ROOT / "elmo_tf" / "published").glob("*/README.md")]
    listed = re.findall(r"^ +- [^#\n]+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed)) and {*PAGES, *cards} <= {*listed}
    reference = "".join(page.read_text() for page in (ROOT / "docs" / "site" / "pages" / "reference").glob("*.md"))
    names = re.findall("^::: (.*)$", reference, re.MULTILINE)
    for module in (elmo_tf, elmo_tf.allennlp, elmo_tf.beam, elmo_tf.tasks):
        own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        public = getattr(module, "__all__", [name for name in own if name[0] != "_"])
        assert public and {f"{module.__name__}.{name}" for name in public} <= {*names}


def test_lists_and_code_are_indented_so_that_the_site_nests_them_like_github():
    for page in PAGES:
        text = re.sub(r"\A---\n.*?^---\n", "", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)
        assert not re.search(r"^ {1,3}```", text, re.MULTILINE), page
        prose = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.DOTALL | re.MULTILINE)
        assert not re.search(r"^ {1,3}[-*+] |^ +\d+\. |^(?![-*+] | |\d+\. ).+\n[-*+] ", prose, re.MULTILINE), page


def test_no_page_or_docstring_shows_the_runner_that_downloads_a_program():
    programs = [program for page in PAGES for program in blocks(page, "python")]
    modules = [path.read_text() for path in (ROOT / "elmo_tf").rglob("*.py")]
    texts = [text for text in programs + modules if "beam.Pipeline(" in text]
    assert len(texts) >= 3
    assert not any("beam.Pipeline()" in text for text in texts)


@pytest.fixture
def folder(savedmodel, tmp_path, monkeypatch) -> pathlib.Path:
    """The working folder of a user who has a model and nothing else."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "savedmodels" / "mine").mkdir(parents=True)
    (tmp_path / "savedmodels" / "mine" / "1").symlink_to(savedmodel.path)
    (tmp_path / "savedmodels" / "demo").symlink_to(tmp_path / "savedmodels" / "mine")
    return tmp_path


def run(code: str, **before) -> types.SimpleNamespace:
    """Runs a program of a page after what the page says comes before; returns its variables."""
    variables = dict(before)
    exec(code, variables)
    return types.SimpleNamespace(**{name: value for name, value in variables.items() if name.isidentifier()})


def test_the_first_program_tells_two_senses_apart_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(models.HOME_VARIABLE, str(tmp_path / "home"))
    bank = run(blocks("README.md", "python")[0]).bank
    cosines = bank @ bank.T
    assert min(cosines[0, 1], cosines[2, 3]) > cosines[:2, 2:].max() + 0.2
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert not (tmp_path / "home").exists()


def test_the_second_program_loads_what_make_savedmodels_writes(folder, capsys):
    (folder / "savedmodels" / "english").symlink_to(folder / "savedmodels" / "mine")
    run(blocks("README.md", "python")[1])
    assert capsys.readouterr().out == "(1, 6, 16)\n"  # this model splits at white space
    made = re.search(r"^savedmodels:.*\n\t.*(elmo-tf import .*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert made[1] == "elmo-tf import english --output savedmodels/english"


def test_the_program_of_the_page_about_models_runs(capsys):
    run(blocks("docs/models.md", "python")[0])
    assert capsys.readouterr().out.splitlines()[-1] == "['A', 'bank', 'of', 'the', 'river', '.'] (6, 256)"


def test_the_program_about_spacy_tells_two_banks_apart(tmp_path, monkeypatch, capsys):
    pytest.importorskip("spacy", reason="spaCy is no dependency")
    monkeypatch.chdir(tmp_path)
    (program,) = blocks("docs/spacy.md", "python")
    run(program)
    shape, similarity = capsys.readouterr().out.splitlines()
    assert shape == "(9, 256)"
    assert 0 < float(similarity) < 0.9


def test_the_program_about_surprisal_adds_the_word_before_and_the_reading_times(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pandas", reason="pandas is no dependency")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "passages.txt").write_text("A dog barked.\nIt slept.\n\nThe Zyqwxes bank lends money.\n")
    rows = [(1, position, 300 + position) for position in range(1, 6)] + [
        (2, position, 400 - position) for position in range(1, 6)
    ]
    lines = ["passage\tposition\tmilliseconds", *("\t".join(map(str, row)) for row in rows)]
    (tmp_path / "times.tsv").write_text("\n".join(lines))
    (program,) = blocks("docs/surprisal.md", "python")
    table = run(program).table
    assert table["word"].tolist() == ["dog", "barked.", "It", "slept.", "bank", "lends", "money."]
    assert table["length_before"].tolist() == [1, 3, 7, 2, 7, 4, 5]
    assert table["milliseconds"].tolist() == [302, 303, 304, 305, 397, 396, 395]
    assert len(capsys.readouterr().out.splitlines()) == 1 + 5


def test_the_example_of_the_page_about_surprisal_is_what_english_says():
    page = (ROOT / "docs" / "surprisal.md").read_text()
    shown = re.findall(
        r"^\| 1 \| 1 \| (\S+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| (\d+) \| true \|$", page, re.MULTILINE
    )
    words = elmo_tf.load("english").surprisal(['"Hello," she said.'])
    assert [word for word, *_ in shown] == [word.word for word in words]
    for (_, *bits, rank), word in zip(shown, words, strict=True):
        assert list(map(float, bits)) == pytest.approx(word[3:6], abs=1e-3)
        assert int(rank) == word.rank


@pytest.mark.parametrize("number", range(4))
def test_each_program_for_those_who_come_from_tf_hub_runs(number, folder):
    """The page has three programs for TF Hub besides."""
    (folder / "savedmodels" / "elmo").symlink_to(folder / "savedmodels" / "mine")
    programs = blocks("docs/from-tf-hub.md", "python")
    assert len(programs) == 4 + 3
    result = run([code for code in programs if not code.startswith("# TF Hub\n")][number])
    if hasattr(result, "model"):
        outputs = result.model(tf.constant(["the cat", "", "a dog barked"]))
        assert outputs.shape == (3, 2)
        assert np.isfinite(outputs).all()
    else:
        assert result.vectors.shape[::2] == (2, 16)


@pytest.mark.slow
def test_the_program_about_sentences_in_keras_runs_and_so_does_that_about_pandas():
    sentences, _, table, *_ = blocks("docs/keras.md", "python")
    built = run(sentences)
    assert built.classifier.predict(built.texts, verbose=0).shape == (2, 2)
    (tokens,) = re.findall("tokens: (.*)$", sentences, re.MULTILINE)
    assert built.vectors.shape == (None, None, 256)
    assert elmo_tf.load("english").encode(built.texts)[0].tokens == tokens.split()
    pytest.importorskip("pandas", reason="pandas is no dependency")
    run(table, classifier=built.classifier)


@pytest.mark.slow
def test_the_programs_about_the_layer_run_in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, first, _, ahead, load = blocks("docs/keras.md", "python")
    built = run(first)
    expected = built.model.predict(built.words, verbose=0)
    assert expected.shape == (2, 5, 3)
    for loaded in (built.loaded, run(load).model):
        np.testing.assert_array_equal(loaded.predict(built.words, verbose=0), expected)
    dataset = tf.data.Dataset.from_tensors((built.words, built.tags))
    mapped = run(ahead, dataset=dataset, keras=keras, ELMo=elmo_tf.ELMo)
    assert next(iter(mapped.dataset))[0].shape[-1] == mapped.inputs.shape[-1] == 50


@pytest.mark.slow
def test_the_program_about_fit_trains_and_exports_a_model(folder, monkeypatch, capsys):
    """In place of `tiny`, a network of a few thousand parameters is trained; it is exported without verification."""
    for name in ("train", "heldout"):
        write_records(folder / "data" / name, [f"the bank lends money to {who}" for who in ("anna", "boris")] * 300)
    tiny = config.override(MICRO_CONFIG, ["train.unroll_steps=20"])
    monkeypatch.setattr(elmo_tf, "preset", {"tiny": tiny}.get)
    monkeypatch.setattr(verification, "problems_in_fresh_process", lambda *_: [])
    (program,) = blocks("docs/keras-fit.md", "python")
    run(program)
    assert 1 < float(capsys.readouterr().out.splitlines()[-1]) < 12
    assert keras.models.load_model("m.keras").bilm.config == MICRO_CONFIG.model
    assert elmo_tf.load("savedmodels/mine").encode(["the bank"])[0].vectors.shape == (2, 16)


@pytest.mark.slow
def test_the_programs_about_the_crf_run():
    first, carried = blocks("docs/crf.md", "python")
    built = run(first)
    assert built.tagger.predict(built.sentences, verbose=0)[1].tolist()[1:] == [-1, -1]
    run(carried, crf=built.crf, chain_kernel=np.eye(3), left_boundary=np.ones(3), right_boundary=np.zeros(3))
    np.testing.assert_array_equal(built.crf.transitions, np.eye(3))


def test_the_programs_about_the_jobs_read_what_the_commands_before_them_wrote(folder, capfd):
    """The commands as the page writes them, and then its programs, on a text of 18 lines."""
    text = "".join(f"the bank number {number}\n" for number in range(18)).encode()
    (folder / "corpus.txt").write_bytes(text)
    (folder / "corpus").mkdir()
    with gzip.open(folder / "corpus" / "a.gz", "wb") as file:
        file.write(text)
    embed = [command for command in commands("pipelines/README.md") if command[0] == "embed"]
    for command in embed:
        jobs.run("embed", command[1:])
    assert [("float16" in command) for command in embed] == [False, True, False]
    _, read_hdf5, read_matrix, read_tfrecords, records, job, columns = blocks("pipelines/README.md", "python")
    assert run(read_matrix).vectors.shape == (18, 16)
    last = run(read_hdf5).vectors
    assert (last.shape, last.dtype) == ((3, 4, 16), np.float32)
    elements = list(run(read_tfrecords).dataset)
    assert [int(line) for line, *_ in elements] == list(range(18))
    _, tokens, vectors = elements[17]
    assert tokens.numpy().tolist() == [b"the", b"bank", b"number", b"17"]
    assert vectors.dtype == tf.float16
    np.testing.assert_allclose(vectors, last[-1], rtol=2**-10, atol=2**-17)
    run(records)
    assert record_folder.open_folder(folder / "data" / "train").info.sentences == 18
    capfd.readouterr()
    run(job)
    assert sorted(capfd.readouterr().out.splitlines()) == [
        "('A bank of the river .', ['A', 'bank', 'of', 'the', 'river', '.'], (6, 16))",
        "('The bank lends money .', ['The', 'bank', 'lends', 'money', '.'], (5, 16))",
    ]
    run(columns)
    assert capfd.readouterr().out == "('The bank', 16)\n"


@pytest.mark.slow
def test_the_programs_about_python_train_and_embed_as_the_page_says(folder, monkeypatch, capsys):
    """In place of `tiny`, a network of a few thousand parameters is trained; it is exported without verification."""
    training, jobs_ = blocks("docs/python.md", "python")
    (folder / "corpus").mkdir()
    for name in ("a", "b"):
        text = "".join(f"the bank lends money to farmer {name}{number} .\n" for number in range(200))
        (folder / "corpus" / f"{name}.txt").write_text(text)
    made = run(jobs_, __name__="__main__")
    assert made.info["vocabulary"]["size"] == 3 + 7  # min_count=2: without the numbers
    assert (made.about["lines"], made.about["token_shape"]) == (400, [16])
    monkeypatch.setattr(elmo_tf, "preset", {"tiny": MICRO_CONFIG}.get)
    monkeypatch.setattr(verification, "problems_in_fresh_process", lambda *_: [])
    capsys.readouterr()
    trained = run(training)
    assert 1 < float(capsys.readouterr().out.splitlines()[-1]) < 100
    assert trained.vectors.shape == (1, 16)


SYSTEMS = {
    "ner": ("docs/tasks.md", "runs/ner_elmo"),
    "coreference": ("docs/coreference.md", "runs/coref"),
    "answers": ("docs/question-answering.md", "runs/answers"),
    "roles": ("docs/semantic-roles.md", "runs/roles"),
}


@pytest.mark.parametrize("task", [slow("ner"), slow("coreference"), slow("answers"), "roles"])
def test_the_program_about_a_system_prints_what_it_predicts(task, folder, capsys, monkeypatch):
    page, workdir = SYSTEMS[task]
    write_untrained(folder / workdir, task)
    program, *others = blocks(page, "python")
    run(program)
    printed = [ast.literal_eval(line) for line in capsys.readouterr().out.splitlines()]
    assert [len(predicted) for predicted in printed] == {"coreference": [1, 1], "roles": [2]}.get(task, [1])
    if others:
        monkeypatch.setattr(verification, "problems_in_fresh_process", lambda *_: [])
        elmo_tf.tasks.load(workdir).export("savedmodels/ner")
        assert run(*others).outputs["tags"].shape == (1, 5)


def test_the_program_on_the_paragraphs_of_questions_prints_their_tokens(folder, capsys):
    (data,) = re.findall(
        r"^```text\n(.*?)^```\n\n```sh\nelmo-tf task answers .*train\.json ", YOUR_DATA, re.DOTALL | re.M
    )
    (folder / "train.json").write_text(data.rpartition("```text\n")[2], "utf-8")
    (program,) = re.findall(
        '^python -c "\n(.*?)^"', (ROOT / "docs" / "question-answering.md").read_text(), re.DOTALL | re.M
    )
    run(program)
    assert capsys.readouterr().out.splitlines()[0].split()[:2] == ["Anna", "was"]


def test_the_program_about_proteins_splits_them_into_residues(folder, savedmodel, capsys):
    checks.copy_with_tokenizer(savedmodel.path, folder / "savedmodels" / "proteins", "characters")
    (program,) = blocks("docs/sequences.md", "python")
    assert run(program).proteins.shape == (2, 16)
    assert capsys.readouterr().out == f"{[*'MKVLAAGIVG']} (10, 16)\n"


def test_the_program_for_those_who_come_from_allennlp_runs(folder, capsys):
    values = published_files.options()
    published_files.write_pair(folder, values, published_files.draw_hdf5(values))
    (program,) = blocks("docs/published-weights.md", "python")
    run(program)
    assert capsys.readouterr().out == "(3, 5, 16)\n"


def test_the_programs_about_savedmodels_load_one(folder):
    load, layers, with_unicode = blocks("savedmodels/README.md", "python")
    assert run(load).vectors["elmo"].shape == (2, 2, 16)
    built = run(layers)
    assert (built.model.output_shape, built.vectors.shape) == ((None, 2), (None, None, 16))
    pytest.importorskip("tensorflow_text")
    assert run(with_unicode).model(tf.constant(["a bank"]))["elmo"].shape == (1, 2, 16)


def test_the_program_that_hides_what_tensorflow_prints_gives_stderr_back(monkeypatch, capfd):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    (program,) = blocks("docs/troubleshooting.md", "python")
    run(program)
    os.write(2, b"still there")
    assert capfd.readouterr().err == "still there"


def test_the_programs_about_scores_print_what_the_page_says(capfd):
    scored, program = blocks("docs/scoring.md", "python")
    substitutes = run(scored).substitutes
    first, *words = capfd.readouterr().out.splitlines()
    assert (first, len(words), len(substitutes)) == ("True", 5, 5)
    run(program)
    printed = dict(line.rsplit(" ", 1) for line in capfd.readouterr().out.splitlines())
    assert float(printed["The keys are on the table ."]) > float(printed["The keys is on the table ."])


def test_the_program_with_another_tokenizer_keeps_german_ordinals_and_abbreviations(folder):
    pytest.importorskip("spacy", reason="spaCy is no dependency")
    tokenizer, *_ = blocks("pipelines/README.md", "python")
    (folder / "raw.txt").write_text("Am 3. Oktober, z. B. in Berlin. Das Haus.\n\nEin Haus.", "utf-8")
    run(tokenizer)
    lines = (folder / "corpus.txt").read_text("utf-8").splitlines()
    assert lines == ["Am 3. Oktober , z. B. in Berlin .", "Das Haus .", "Ein Haus ."]
