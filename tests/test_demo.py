"""`make demo`: its text is real. That its path goes through, `make demo` itself shows."""

import re

from examples import demo
from tests.helpers import run_python


def test_the_text_is_thousands_of_english_sentences_without_grammar_and_code():
    sentences = list(demo.tokenized_sentences())
    assert sentences == list(demo.tokenized_sentences())
    assert len(sentences) > 3000
    tokens = [token for sentence in sentences for token in sentence.split(" ")]
    assert len(tokens) > 70_000
    assert all(tokens)
    assert all(token.split() == [token] for token in tokens)
    assert tokens.count("the") > 3000
    assert not {"::=", ">>>", "***", "==="} & set(tokens)
    for word, queries in demo.SENSES.items():
        assert sum(word in sentence.split() for sentence in sentences) > 20
        assert all(word in query.split() for query in queries)


def test_the_demo_removes_no_folder_that_is_not_its_own(tmp_path):
    (tmp_path / "mine").touch()
    for option in ("--folder", "--output"):
        done = run_python("examples/demo.py", option, tmp_path, check=False)
        assert done.returncode == 2
        assert re.search(f"{option}: .* exists already; name a new folder", done.stderr)
    assert (tmp_path / "mine").exists()
