"""What imports what, counted inside functions and for the type checker as well."""

from __future__ import annotations

import grimp
import networkx as nx
import pytest

ROOMS = ("haggle", "serving", "data_gen", "training", "eval", "pipeline")
# Circles that stand, each with its reason.
KNOWN = {
    # The papers' format and ours are chosen by a constraint, which both read.
    ("haggle.trade.papers", "haggle.trade.wire"),
    # `Session.confirm` closes a sale by code that moves sessions.
    (
        "haggle.trade.confirm",
        "haggle.trade.edits",
        "haggle.trade.outcome",
        "haggle.trade.resolve",
        "haggle.trade.session",
        "haggle.trade.shared_stock",
    ),
    # For the type checker alone: the server has sessions, whose routes name the server.
    ("serving.http.server", "serving.http.sessions"),
}


@pytest.fixture(scope="module")
def imports() -> nx.DiGraph:
    found = grimp.build_graph(*ROOMS, exclude_type_checking_imports=False, cache_dir=None)
    graph = nx.DiGraph()
    for module in found.modules:
        graph.add_node(module)
        for other in found.find_modules_directly_imported_by(module):
            graph.add_edge(module, other)
    return graph


def test_no_modules_import_each_other_in_a_circle(imports):
    circles = [tuple(sorted(c)) for c in nx.strongly_connected_components(imports) if len(c) > 1]
    assert set(circles) == KNOWN
