"""The documents: every link of a page leads somewhere; results.md is one page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from haggle.core.config import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
RESULTS = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the site that shows it makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    lost = []
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            lost.append(target)
    assert lost == []


def test_a_game_needs_six_lines_at_most() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```$", PAGES[0].read_text("utf-8"), re.M | re.S)
    assert "import haggle" in example
    assert len([line for line in example.splitlines() if line.strip()]) <= 6


def test_results_are_one_page_whose_commands_are_all_cited() -> None:
    told, _, commands = RESULTS.partition("## Commands")
    words = [word for word in told.split() if any(letter.isalnum() for letter in word)]
    assert len(words) < 1400, "older versions and experiments stand in log.md"
    numbers = [int(n) for n in re.findall(r"^(\d+)\. ", commands, re.M)]
    cited = {int(n) for n in re.findall(r"\[(\d+)\](?!\()", told)}
    assert numbers == list(range(1, len(numbers) + 1)) and cited == set(numbers)
