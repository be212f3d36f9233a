"""The comparison of tokenizers reads texts and words, and names the kinds of difference."""

import sys

from benchmarks import splitting

CONLLU = """# text = They don't know the well-known e-mail a@b.org now.
1\tThey\tthey
2-3\tdon't\t_
2\tdo\tdo
3\tn't\tnot
4\tknow\tknow
5\tthe\tthe
6\twell\twell
7\t-\t-
8\tknown\tknown
9\te-mail\te-mail
10\ta@b.org\ta@b.org
11\tnow\tnow
12\t.\t.
"""


def test_words_of_annotators_are_compared_by_kind_of_difference(tmp_path, monkeypatch, capsys):
    (tmp_path / "text.conllu").write_text(CONLLU)
    monkeypatch.setattr(sys, "argv", ["splitting.py", "--data", str(tmp_path / "text.conllu")])
    splitting.main()
    out = capsys.readouterr().out
    # 8 of our 14 and their 12 words are the same.
    assert out.startswith("1 sentences: F1 of words 61.54%, the same words 0.00%\n")
    assert "1  hyphens: 'well-known' / 'well - known'" in out
    assert "1  addresses and file names: 'a @ b . org' / 'a@b.org'" in out


def test_lines_that_change_are_counted(tmp_path, monkeypatch, capsys):
    (tmp_path / "text").write_text("He did n't .\nChapter I.\n")
    monkeypatch.setattr(sys, "argv", ["splitting.py", "--input", str(tmp_path / "text")])
    splitting.main()
    assert capsys.readouterr().out.startswith("1 of 2 lines change\n")
