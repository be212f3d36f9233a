"""Questions about paragraphs: SQuAD's format, a question per line, and the positions of answers."""

import json
import logging
import random

import pytest

from elmo_tf.annotated import squad
from elmo_tf.annotated.reading_options import Reading
from elmo_tf.annotated.squad import Answer
from elmo_tf.errors import InputError
from tests.annotated.text_file import write

CONTEXT = "Anna (born 1990\u201391) didn\u2019t like  ``New-York''."


def article(*questions: dict, context: str = CONTEXT) -> str:
    data = [{"title": "t", "paragraphs": [{"context": context, "qas": questions}]}]
    return json.dumps({"version": "1.1", "data": data})


def row(text: str, start: int, name: str = "q1", **changes) -> dict:
    return {"question": "Who?", "id": name, "answers": [{"text": text, "answer_start": start}]} | changes


def test_questions_have_paragraph_tokens_and_answers(tmp_path):
    (question,) = squad.read_questions(write(tmp_path, article(row("1990", 11)), "file.json.xz"))
    tokens = 'Anna ( born 1990 - 91 ) did n\'t like " New - York " .'
    assert (" ".join(question.paragraph.tokens), question.tokens) == (tokens, ["Who", "?"])
    assert (question.text, question.id, question.answers) == ("Who?", "q1", (Answer("1990", 11),))


def test_the_words_of_an_answer_are_those_that_have_a_part_of_it():
    paragraph = squad.paragraph_of("the (first) years ")
    texts = {"first": (2, 2), "first)": (2, 3), "irs": (2, 2), ") ye": (3, 4), "the (first) years ": (0, 4), " ": None}
    for text, expected in texts.items():
        assert paragraph.token_span(Answer(text, paragraph.text.index(text))) == expected, text
    assert paragraph.text_of(2, 4) == Answer("first) years", 5)


def test_answers_are_cut_from_the_text_as_it_stands():
    generator = random.Random(0)
    for _ in range(300):
        paragraph = squad.paragraph_of("".join(generator.choices("ab\u00e91.- '`\"\n\u00a0\u4e2d\U0001f600", k=30)))
        count = len(paragraph.words)
        for first in range(count):
            for last in range(first, count):
                answer = paragraph.text_of(first, last)
                assert paragraph.text[answer.start :].startswith(answer.text)
                assert paragraph.token_span(answer) == (first, last)


# Paragraphs and their answers in ten scripts. Each answer begins and ends where a word of the language does.
SCRIPTS = {
    "latin": ("The 24-year-old (Zoë) sat in cafe\u0301 X.", ["24", "Zoë", "cafe\u0301 X"]),
    "devanagari": ("यह नीली किताब है। 1990 में", ["नीली किताब", "है", "1990"]),
    "tamil": ("வணக்கம் உலகம்.", ["உலகம்"]),
    "arabic": ("ولد في مكة، عام 570؟ بــغورو.", ["مكة", "عام 570", "غورو"]),
    "thai": ("กรุงเทพมหานครเป็นเมืองหลวงของไทยตั้งแต่ปี 2325", ["กรุงเทพมหานคร", "ไทย", "ปี 2325", "เมืองหลวง"]),
    "lao": ("ວຽງຈັນເປັນນະຄອນຫຼວງຂອງລາວ", ["ວຽງຈັນ", "ນະຄອນຫຼວງ", "ລາວ"]),
    "khmer": ("ភ្នំពេញជារាជធានីនៃកម្ពុជា។", ["ភ្នំពេញ", "រាជធានី", "កម្ពុជា"]),
    "burmese": ("ရန်ကုန်သည်မြန်မာနိုင်ငံ၏အကြီးဆုံးမြို့ဖြစ်သည်။", ["ရန်ကုန်", "မြန်မာနိုင်ငံ", "အကြီးဆုံးမြို့"]),
    "han": ("小明在南京大學讀書\uff0c1990年。", ["南京大學", "讀書", "1990年"]),
    "kana": ("東京タワーに行きました。", ["東京タワー", "行き"]),
    "cyrillic": ("Анна жила в Нью-Йорке (1990\u201391).", ["Нью", "1990", "91"]),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_spans_of_words_can_give_every_answer_in_each_script(script):
    context, answers = SCRIPTS[script]
    paragraph = squad.paragraph_of(context)
    for text in answers:
        answer = Answer(text, context.index(text))
        assert paragraph.text_of(*paragraph.token_span(answer)) == answer


def test_an_answer_that_is_not_at_its_place_is_left_out(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "elmo_tf")
    both = [{"text": "born", "answer_start": 6}, {"text": "Boris", "answer_start": 0}]
    rows = [row("1990", 12), row("born", 6, "q2", answers=both), row("", 3, "q3"), row("x", 3, "q4", answers=[])]
    (question,) = squad.read_questions(write(tmp_path, article(*rows)))
    assert (question.id, question.answers) == ("q2", (Answer("born", 6),))
    assert "3 answers that are not at their answer_start, 3 of 4 questions" in caplog.text
    with pytest.raises(InputError, match=r"question q1: no answer, or an answer that is not at its answer_start$"):
        squad.read_questions(write(tmp_path, article(*rows)), Reading(strict=True))


def test_questions_are_asked_without_answers_in_two_formats(tmp_path):
    rows = [{"question": "Who?", "id": "q1"}, {"question": "When?", "id": "q2", "answers": []}]
    asked = squad.read_questions(write(tmp_path, article(*rows)), labeled=False)
    lines = [{"context": CONTEXT, "question": text, "id": name} for text, name in (("Who?", "q1"), ("When?", "q2"))]
    path = write(tmp_path, "\n".join(map(json.dumps, lines)) + "\n\n")
    assert squad.read_questions(path, labeled=False) == asked
    expected = [("q1", "Who?", ()), ("q2", "When?", ())]
    assert [(question.id, question.text, question.answers) for question in asked] == expected


def test_questions_without_an_answer_are_those_that_a_file_says_have_none(tmp_path):
    impossible = row("", 0, "q2", answers=[], is_impossible=True, plausible_answers=[{"text": "a", "answer_start": 0}])
    path = write(tmp_path, article(row("born", 6), impossible, row("x", 0, "q3", answers=[])))
    given = [(question.id, question.answers, question.is_impossible) for question in squad.read_questions(path)]
    assert given == [("q1", (Answer("born", 6),), False), ("q2", (), True)]


ROWS = [
    {"id": "q1", "question": "Who?", "context": CONTEXT, "answers": {"text": ["born", "Anna"], "answer_start": [6, 0]}},
    {"id": "q2", "question": "Why?", "context": CONTEXT, "answers": {"text": [], "answer_start": []}},
]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.parquet"])
def test_rows_of_hugging_face_have_lists_of_answers(tmp_path, name):
    path = write(tmp_path, "\n".join(map(json.dumps, ROWS)), name)
    if name.endswith("parquet"):
        pyarrow = pytest.importorskip("pyarrow.parquet")
        pyarrow.write_table(pytest.importorskip("pyarrow").Table.from_pylist(ROWS), path)
    first, second = squad.read_questions(path)
    assert first.answers == (Answer("born", 6), Answer("Anna", 0))
    assert (second.id, second.answers, second.is_impossible) == ("q2", (), True)


# The line of a question to be answered.
ASKED = json.dumps({"context": "a", "question": "b"}) + "\n"
UNEQUAL = '{"context": "a", "question": "b", "answers": {"text": ["a"], "answer_start": []}}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n", ": it has no question with an answer"),
        ("{", ": not JSON: "),
        ("[" * 100_000, ": not JSON: brackets are nested too deeply"),
        ('{"version": "1.1"}', ", line 1: it has 'version', but no question, and no context"),
        (
            '{"passage": "a", "query": "b"}\n' * 2,
            ", line 1: it has 'passage', 'query', but no question, and no context",
        ),
        (article(row("born", -1)), r": expected .*answer_start to be int >= 0, found"),
        (article(row("none", 6)), ": it has no question with an answer"),
        (article(row("born", 6, question=" ")), ", question q1: the question has no words"),
        (article(row("born", 6), context=" "), ", question q1: the paragraph has no words"),
        (ASKED + "no", ", line 2: not JSON: "),
        (ASKED + '{"question": "a"}', ", line 2: it has 'question', but no context"),
        (ASKED + UNEQUAL, ", line 2: expected answers whose lists text and answer_start have the same length, found "),
    ],
)
def test_another_file_or_line_is_refused_by_its_name(tmp_path, text, message):
    path, labeled = write(tmp_path, text), not text.startswith(ASKED)
    with pytest.raises(InputError, match=f"^{path}{message}"):
        squad.read_questions(path, labeled=labeled)


def test_a_question_without_words_keeps_its_place_in_predictions(tmp_path):
    path = write(tmp_path, ASKED + '{"context": "a", "question": " "}')
    assert [question.tokens for question in squad.read_questions(path, labeled=False)] == [["b"], []]
