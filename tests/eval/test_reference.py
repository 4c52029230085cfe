"""The papers' figures: read as printed, matched to our methods."""

from __future__ import annotations

import pytest
import yaml

from eval.reference import FILE, load_reference, published, published_transitions
from haggle.core.errors import HaggleError
from haggle.trade.methods import METHODS
from haggle.trade.procedure import load_procedure
from haggle.trade.records import SCENARIOS


def test_methods_and_scenarios_are_ours():
    reference = load_reference()
    assert set(reference.scenarios.values()) == set(SCENARIOS)
    rows = (*reference.stcr, *reference.sirr, *reference.configurations, *reference.transitions)
    assert {row.method for row in rows} - {None} <= set(METHODS)


def test_the_proposed_method_gathers_its_figures_from_all_tables():
    row = next(p for p in published("specific_items") if p.name == "SIBP+PPP" and p.stcr)
    assert row.stcr and row.sirr and row.table
    assert (row.stcr.stcr, row.sirr.sirr, row.table.others.price_accuracy) == (97.73, 95.05, 99.7)
    assert set(row.sources) == {"Table 1", "Table 2", "Section 4.3"}


def test_no_published_row_is_lost_or_shown_twice():
    reference = load_reference()
    for scenario in SCENARIOS:
        shown = published(scenario)
        for kind, rows in (("stcr", reference.stcr), ("table", reference.configurations)):
            ours = [r for r in rows if reference.scenarios[r.scenario] == scenario]
            assert [getattr(p, kind) for p in shown if getattr(p, kind)] == [
                r for p in shown for r in ours if r is getattr(p, kind)
            ]
            assert sum(bool(getattr(p, kind)) for p in shown) == len(ours)


def test_rates_are_percentages_of_whole_counts():
    for row in load_reference().stcr:
        hits = row.stcr / 100 * row.n
        assert abs(hits - round(hits)) < 0.006 * row.n / 100 + 0.01, row


def test_transitions_name_states_of_the_procedure():
    states = set(load_procedure().states) | {"<start>", "<end>"}
    for scenario in SCENARIOS:
        tables = published_transitions(scenario)
        assert {t.paper for t in tables} == {"astp", "sibp"}
        for table in tables:
            assert set(table.labels) <= states


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d: d["stcr"][0].update(stcrr=1), "did you mean 'stcr'"),
        (lambda d: d["stcr"][0].update(paper="aspt"), "did you mean 'astp'"),
        (lambda d: d["sirr"][0].update(scenario="S9"), "unknown scenario 'S9'"),
        (lambda d: d["transitions"][0]["counts"].pop(), "are not 8 by 8"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path, change, complaint):
    data = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    change(data)
    path = tmp_path / "reference.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    with pytest.raises(HaggleError) as refused:
        load_reference(path)
    assert complaint in str(refused.value) and "reference.yaml" in str(refused.value)
