"""The page about a text: its numbers, its text, and what a browser makes of it."""

import html.parser
import http.server
import itertools
import json
import math
import re
import shutil
import subprocess
import threading

import numpy as np
import pytest

import elmo_tf
from elmo_tf import cli, sources
from elmo_tf.errors import InputError
from elmo_tf.probes import look
from elmo_tf.probes.look import MAX_SENTENCES
from tests.helpers import ROOT

pytestmark = pytest.mark.usefixtures("loaded_once")

# "sat" is a use of every sentence but the last; "dog" comes in two spellings.
TEXTS = ["the cat sat on the mat", "a dog sat", "Dog and cat sat on a zebra", "cats sleep"]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def page(workdir):
    return look.look(sources.find(workdir.path), TEXTS, "SAT")


def test_surprisal_is_that_of_score_in_bits(page, workdir):
    for scored, bits, unknown in zip(elmo_tf.load(workdir).score(TEXTS), page["bits"], page["unknown"], strict=True):
        nats = scored.forward_log_probs[:-1], scored.backward_log_probs[1:]
        np.testing.assert_allclose(bits[:2], -np.stack(nats) / math.log(2), atol=0.005 + 1e-4)
        assert unknown == np.flatnonzero(scored.unknown).tolist()


def test_words_and_surprisal_given_both_sides_are_those_of_fill(page, workdir):
    elmo = elmo_tf.load(workdir)
    numbers = page["likeliest"][1][2][2]
    assert [page["words"][number] for number in numbers] == [word.token for word in elmo.fill("a dog [MASK]", top=5)]
    # Up to the probability of unknown words, which `fill` does not count.
    (sat,) = (word for word in elmo.fill("a dog [MASK]", top=100) if word.token == "sat")
    assert page["bits"][1][2][2] == pytest.approx(-math.log2(sat.score), abs=0.5)


def test_points_of_three_uses_have_the_distances_of_their_vectors(page, workdir):
    encoded = elmo_tf.load(workdir).encode(TEXTS, layers="all")
    assert page["uses"] == [(0, 2), (1, 2), (2, 3)]
    vectors = np.stack([encoded[n].vectors[:, position] for n, position in page["uses"]], 1)
    assert len(page["points"]) == len(vectors) == 3
    for layer, points in zip(vectors, np.array(page["points"]), strict=True):
        for first, second in itertools.combinations(range(3), 2):
            distance = np.linalg.norm(layer[first] - layer[second])
            assert np.linalg.norm(points[first] - points[second]) == pytest.approx(distance, abs=2e-4)


def test_the_nearest_uses_come_first_and_never_include_the_use_itself(page, workdir):
    encoded = elmo_tf.load(workdir).encode(TEXTS, layers=2)
    vectors = np.stack([encoded[n].vectors[position] for n, position in page["uses"]])
    vectors -= vectors.mean(0)
    for use, near in enumerate(page["nearest"][2]):
        cosines = {other: percent for other, percent in near}
        assert sorted([use, *cosines]) == [0, 1, 2]
        assert list(cosines.values()) == sorted(cosines.values(), reverse=True)
        for other, percent in near:
            lengths = np.linalg.norm(vectors[use]) * np.linalg.norm(vectors[other])
            assert percent == pytest.approx(100 * vectors[use] @ vectors[other] / lengths, abs=0.51)


def test_the_heat_map_has_the_cosine_of_each_pair_minus_the_mean_of_the_text(page, workdir):
    encoded = [sentence.vectors for sentence in elmo_tf.load(workdir).encode(TEXTS, layers=1)]
    first, second, third = encoded[1] - np.concatenate(encoded).mean(0)
    pairs = [(first, second), (first, third), (second, third)]
    expected = [100 * a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in pairs]
    np.testing.assert_allclose(page["cosines"][1][1], expected, atol=0.51)


def test_equal_sentences_are_computed_once_and_have_the_same_numbers(workdir, monkeypatch):
    computed, layers = [], look.NumpyBiLM.layers
    monkeypatch.setattr(
        look.NumpyBiLM,
        "layers",
        lambda self, batch, **options: computed.extend(batch) or layers(self, batch, **options),
    )
    page = look.look(sources.find(workdir), [TEXTS[0], *[TEXTS[1]] * 8, TEXTS[2]], "sat")
    assert [b" ".join(tokens).decode() for tokens in computed] == [TEXTS[1], TEXTS[0], TEXTS[2]]
    assert page["bits"][1:9] == [page["bits"][1]] * 8
    assert page["likeliest"][1:9] == [page["likeliest"][1]] * 8


def test_a_model_without_its_softmax_makes_a_page_without_surprisal_of_uses_in_upper_and_lower_case(savedmodel):
    page = look.look(sources.find(savedmodel.path), TEXTS, "dog")
    assert "bits" not in page
    assert page["uses"] == [(1, 1), (2, 0)]
    assert len(page["points"][0]) == 2


def test_a_damaged_softmax_is_an_error(workdir, monkeypatch):
    def damaged(source):
        raise InputError(source.name, "damaged")

    monkeypatch.setattr(sources.Workdir, "softmax", damaged)
    with pytest.raises(InputError, match="damaged"):
        look.look(sources.find(workdir.path), TEXTS, "sat")


@pytest.mark.parametrize(
    ("texts", "word", "message"),
    [(TEXTS, "zebra", "'zebra' has 1 use in the text"), (["a a"] * (MAX_SENTENCES + 1), "a", "1,001 sentences")],
)
def test_a_page_needs_two_uses_and_at_most_a_thousand_sentences(savedmodel, texts, word, message):
    with pytest.raises(InputError, match=message):
        look.look(sources.find(savedmodel.path), texts, word)


def test_a_word_that_the_tokenizer_splits_is_an_error():
    with pytest.raises(InputError, match=r"^word: the tokenizer penn splits it: '学 校'$"):
        look.look(sources.find("english"), ["学校", "我们的学校"], "学校")


HOSTILE = (
    "a </script><script>document.title='ran'</script><img src={address}/x onerror=document.title='ran'> &amp; {{data}}"
)


@pytest.fixture
def written(workdir, tmp_path, capsys):
    """Writes a page about sentences by the command, `written(address)`; returns its file and its hostile sentence."""

    def write(address: str = "http://127.0.0.1:9"):
        sentence = HOSTILE.replace("{address}", address)
        (tmp_path / "text.txt").write_text(f"{sentence}\n\n{sentence} a\n<b>a</b> dog\n", "utf-8")
        text, output = str(tmp_path / "text.txt"), str(tmp_path / "page.html")
        command = ["look", "--model", str(workdir.path), "--input", text, "--word", "a", "--output", output]
        assert cli.main(command) == 0
        assert capsys.readouterr().out == f"{output}\n"
        return tmp_path / "page.html", sentence

    return write


class _Elements(html.parser.HTMLParser):
    """Counts elements, and keeps the data."""

    def __init__(self, page: str):
        super().__init__()
        self.counts: dict[str, int] = {}
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_data(self, data):
        self.texts.append(data.strip())


def test_a_link_to_nothing_is_refused_as_output(tmp_path):
    (tmp_path / "page.html").symlink_to(tmp_path / "elsewhere.html")
    with pytest.raises(InputError, match="a link to a path that does not exist"):
        look.write(sources.find("english"), tmp_path / "text", "bank", tmp_path / "page.html")
    assert not (tmp_path / "elsewhere.html").exists()


def test_a_file_that_exists_stays_as_it_is(tmp_path):
    (tmp_path / "page.html").write_text("mine")
    with pytest.raises(InputError, match=r"page.html: already exists; name a new file$"):
        look.write(sources.find("english"), tmp_path / "text", "bank", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "mine"


def test_markup_in_a_sentence_stays_text(written):
    page, sentence = written()
    elements = _Elements(page.read_text("utf-8"))
    assert elements.counts["script"] == 2
    assert "img" not in elements.counts
    (data,) = (json.loads(text) for text in elements.texts if text.startswith("{"))
    assert [" ".join(tokens) for tokens in data["tokens"]] == [sentence, f"{sentence} a", "<b>a</b> dog"]


def test_boundary_tokens_in_the_text_leave_a_page_of_valid_json(workdir, tmp_path):
    (tmp_path / "text").write_text("the <S> cat </S> sat\nthe cat\n")
    look.write(sources.find(workdir.path), tmp_path / "text", "the", tmp_path / "page.html")
    (data,) = (text for text in _Elements((tmp_path / "page.html").read_text()).texts if text.startswith("{"))
    forward, backward, both = json.loads(data, parse_constant=pytest.fail)["bits"][0]
    assert [number is None for number in both] == [False, True, False, True, False]
    assert None not in forward + backward


def test_the_template_names_no_address_and_its_policy_allows_none():
    template = (ROOT / "elmo_tf" / "probes" / "look.html").read_text("utf-8")
    assert re.findall(r"\w+://[^\"']*", template) == ["http://www.w3.org/2000/svg"]  # the name of SVG's elements
    assert not re.search(r"(?<!-)\b(src|href|srcset|action|@import|url\(|fetch|innerHTML|eval)\b", template)
    assert "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'" in template


def shown(page, tmp_path) -> str:
    """Returns the elements that a browser makes of a page."""
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command = [CHROMIUM, *options, "--virtual-time-budget=5000", "--dump-dom", page.as_uri()]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=True).stdout


DIRECTIONS = """<script>
{
document.querySelector(".word").dispatchEvent(new FocusEvent("focus"));
const direction = query => getComputedStyle(document.querySelector(query)).direction;
const map = document.querySelector("#heat svg"), left = -map.viewBox.baseVal.x;
const labels = [...map.querySelectorAll("text")];
document.body.append(JSON.stringify([
  ...["#nearest li div", "#words", "#sentence option", "#tip bdi", "#tip", "h1"].map(direction),
  labels.at(-1).textContent, labels.every(label => label.getComputedTextLength() < left),
]), " end of directions");
}
</script></html>"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize(("sentence", "direction"), [("זה ספר , a", "rtl"), ("这 本 书", "ltr"), ("यह किताब", "ltr")])
def test_a_sentence_has_its_own_direction_and_labels_are_cut_between_characters(sentence, direction, workdir, tmp_path):
    word = sentence.split()[0]
    look_at = [f"{sentence} {letters * 20}" for letters in ("ฮ็", "क्षि")]
    (tmp_path / "text").write_text("\n".join(look_at), "utf-8")
    look.write(sources.find(workdir.path), tmp_path / "text", word, tmp_path / "page.html")
    page = tmp_path / "page.html"
    page.write_text(page.read_text("utf-8").replace("</html>", DIRECTIONS), "utf-8")
    texts = _Elements(shown(page, tmp_path)).texts
    (said,) = (json.loads(text.removesuffix(" end of directions")) for text in texts if text.endswith("of directions"))
    assert said[:3] == [direction] * 3
    assert said[4:] == ["ltr", "ltr", "ฮ็" * 12 + "…", True]


# Chooses the second use by the keyboard, the same by a click, moves to a word and in a heat map.
ACTIONS = """<script>
const said = [], arrow = { key: "ArrowRight", bubbles: true };
document.querySelectorAll("#uses svg")[1].dispatchEvent(new KeyboardEvent("keydown", arrow));
said.push(document.querySelector("#nearest li").textContent, document.querySelector("#sentence").value);
document.querySelector("#uses circle.chosen").dispatchEvent(new MouseEvent("click"));
document.querySelector(".word").dispatchEvent(new FocusEvent("focus")); // focus() has no event without a window
said.push(document.querySelector("#tip").textContent.split(":")[0]);
document.querySelectorAll("#heat svg")[1].dispatchEvent(new KeyboardEvent("keydown", arrow));
said.push(document.querySelector("#tip").textContent.split(":")[0], document.querySelectorAll("#heat rect").length);
document.body.append(JSON.stringify(said), " end of actions");
</script></html>"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_shows_the_page_without_a_request_and_without_running_its_text(written, tmp_path):
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            self.send_error(404)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page, sentence = written(f"http://127.0.0.1:{server.server_port}")
        page.write_text(page.read_text("utf-8").replace("</html>", ACTIONS), "utf-8")
        elements_shown = shown(page, tmp_path)
        server.shutdown()
    assert requests == []
    elements = _Elements(elements_shown)
    assert "<title>3 uses of “a”</title>" in elements_shown
    assert "img" not in elements.counts
    assert elements.counts["circle"] == 3 * 3
    (said,) = (
        json.loads(text.removesuffix(" end of actions")) for text in elements.texts if text.endswith("end of actions")
    )
    first, length = sentence.split()[0], len(sentence.split()) + 1
    assert said[1:4] == ["1", "before", f"{first} \u2013 {sentence.split()[1]}"]
    assert said[0].split()[0] == first
    assert said[4] == 3 * length**2
