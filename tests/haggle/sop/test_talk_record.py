"""A talk as a record: it goes on where it was, without a model."""

from __future__ import annotations

import json

import pytest

from haggle.core.agent import complete
from haggle.core.engine import Generation
from haggle.core.errors import HaggleError
from haggle.sop.domain import SOP, Action, Talk
from haggle.sop.talk_record import from_record, to_record
from haggle.sop.task import load_task


def test_a_talk_goes_on_where_it_was():
    task = load_task("gatekeeper")
    talk = kept = Talk(task)
    for user, act in (
        ("Greeting", "Greet"), ("Other", "AskName"), ("GivesName", "AskPass"),
        ("ShowsPass", "AskErrand"), ("PeacefulErrand", "Admit"), ("Other", "Farewell"),
    ):  # fmt: skip
        kept = from_record(json.loads(json.dumps(to_record(kept))), task)
        said = Generation(Action(user=user, act=act, say="Well.").text())
        one = complete(SOP, talk, "me", said, "written")
        two = complete(SOP, kept, "me", said, "written")
        assert one == two and talk.messages("x") == kept.messages("x")
    assert kept.ended and kept.path == talk.path and kept.success == talk.success


def test_a_record_of_another_version_is_told():
    task = load_task("gatekeeper")
    with pytest.raises(HaggleError, match="stored in version None"):
        from_record({"last": ""}, task)
