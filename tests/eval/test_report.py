"""The report: one file that tells the truth about what was measured, and runs nobody's code."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from eval.experiment import EvalConfig, run_experiment
from eval.report import _cells, counted, interval, percent, write_report
from haggle.core.storage import read_jsonl
from haggle.trade.records import Dialogue

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """Tags, attributes and text of a page; complains about tags that do not close."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open.pop() == tag, f"</{tag}> closes another tag"

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture
def experiment(oracle, tmp_path: Path):
    def run(spoil=lambda call, text: text, **fields):
        runs = [{"name": "first", "engine": "x"}, {"name": "second", "engine": "y", "guard": "off"}]
        config = EvalConfig.model_validate({"runs": runs, "dialogues": 3} | fields)
        metrics = run_experiment(
            config, tmp_path / "out", start=lambda run: oracle(spoil), progress=False
        )
        return metrics, (tmp_path / "out" / "report.html").read_text(encoding="utf-8")

    return run


def skip_reviews(call: int, text: str) -> str:
    return text.replace('"state":"FINAL_CHECK"', '"state":"COMMIT_SALE"')


def test_the_page_is_whole_and_loads_nothing(experiment):
    _, html = experiment()
    page = Page(html)
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    assert not any(
        name.startswith("on") or name in {"src", "href"} for _, a in page.tags for name in a
    )
    assert (
        "http://" not in html
        and "https://" not in html
        and "url(" not in html
        and "@import" not in html
    )
    policies = [a for tag, a in page.tags if tag == "meta" and a.get("http-equiv")]
    assert policies[0]["content"] == "default-src 'none'; style-src 'unsafe-inline'"


def test_our_figures_stand_beside_the_published_ones_which_are_labelled(experiment):
    metrics, html = experiment()
    assert html.count("published: gemini-2.5-flash<br>") == 2, "ASTP on both scenarios"
    assert "100.00% of 218" in html and "99.64% of 274" in html and "95.05% of 485" in html
    stcr = metrics["results"][0]["scenarios"]["specific_items"]["stcr"]
    assert f"{stcr['passed']} of {stcr['n']}, 95% CI" in html
    assert "not a baseline of this experiment" in html and "Our players are scripted" in html


def test_every_run_has_its_column_with_guard_method_and_model(experiment):
    metrics, html = experiment(scenarios=["recommendation"])
    head = re.findall(r"<th>(\w+)<br><small>guard (\w+) · ([\w-]+)<br>(\w+)</small>", html)
    assert head == [
        ("first", "state", "astp-compact", "scripted"), ("second", "off", "astp-compact", "scripted"),
    ]  # fmt: skip
    assert "All scenarios together" not in html
    assert f"{metrics['machine']['cores']} cores" in html and "dialogues: 3" in html


def test_what_players_and_models_say_is_shown_as_text(experiment, tmp_path):
    metrics, _ = experiment(runs=[{"name": "first", "engine": "x"}], scenarios=["specific_items"])
    row = read_jsonl(tmp_path / "out" / "first" / "specific_items.jsonl")[0]
    attack = "<script>alert(1)</script>"
    row["world"] = row["turns"][0]["raw"] = row["turns"][0]["player"] = attack
    row["turns"][0]["response"]["npc_dialogue"] = "</pre><img src=x onerror=alert(1)>"
    row["turns"][0]["cart"] = {"<b>axe": 1}
    metrics["results"][0]["model"] = attack
    metrics["results"][0]["run"]["name"] = "first\"'><script>"
    path = tmp_path / "attacked.html"
    dialogues = {"first\"'><script>": {"<i>specific": [Dialogue.model_validate(row)]}}
    write_report(metrics, path, dialogues)
    html = path.read_text(encoding="utf-8")
    page = Page(html)
    assert not {tag for tag, _ in page.tags} & {"script", "img", "i", "b"}
    assert "".join(page.text).count(attack) >= 4
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4


def test_samples_are_the_first_with_a_mistake_and_the_first_without(experiment, tmp_path):
    _, html = experiment(skip_reviews, dialogues=6)
    heads = re.findall(r"<h3>second · specific_items · seed (\d+)", html)
    rows = read_jsonl(tmp_path / "out" / "second" / "specific_items.jsonl")
    wrong = [
        row["seed"] for row in rows
        if any(t["failed"] or (t["state"], t["cart"]) != (t["truth"]["state"], t["truth"]["cart"]) for t in row["turns"])
    ]  # fmt: skip
    right = [row["seed"] for row in rows if row["seed"] not in wrong]
    assert wrong and heads == [str(group[0]) for group in (wrong, right) if group]
    assert "meant: FINAL_CHECK" in html and '<span class="tag bad">critical</span>' in html


def test_without_dialogues_there_are_no_samples(experiment, tmp_path):
    metrics, _ = experiment()
    write_report(metrics, tmp_path / "bare.html")
    assert "Sample dialogues" not in (tmp_path / "bare.html").read_text(encoding="utf-8")


def test_what_was_not_observed_is_said_to_be_so(experiment):
    _, html = experiment(lambda call, text: "garbage", dialogues=1)
    assert "n/a (0 of 0)" in html
    assert percent({"value": None, "n": 0}) == "n/a (0 of 0)" and interval({"value": None}) == ""
    assert "None" not in "".join(Page(html).text) and "nan" not in html


def test_a_skipped_review_is_framed_but_not_behind_small_talk():
    states = ["CASUAL", "OFFER_SELL", "FINAL_CHECK", "COMMIT_SALE"]
    grid = [[1, 1, 1, 1]] * 5
    lines = _cells(["Start", *states], states, grid)["lines"]
    framed = {line["label"] for line in lines if line["cells"][3]["skips"]}
    assert framed == {"Start", "OFFER_SELL", "COMMIT_SALE"}
    assert not any(cell["skips"] for line in lines for cell in line["cells"][:3])


def test_shading_is_the_share_of_the_row_and_an_unknown_count_has_none():
    line = _cells(["CASUAL"], ["CASUAL", "END", "OFFER_SELL"], [[3, None, 1]])["lines"][0]
    assert [(c["count"], c["share"]) for c in line["cells"]] == [(3, 0.75), ("–", 0), (1, 0.25)]
    assert _cells(["CASUAL"], ["END"], [[0]])["lines"][0]["cells"][0]["share"] == 0


def test_figures_are_written_for_people():
    assert percent({"value": 0.9773}) == "97.7%"
    seen = {"value": 0.9773, "n": 88, "passed": 86, "low": 0.9209, "high": 0.9937}
    assert interval(seen) == "86 of 88, 95% CI 92.1 to 99.4"
    assert counted({"b": 2, "a": 1, "c": 0}) == "a 1, b 2" and counted({"a": 0}) == "none"
