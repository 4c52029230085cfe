"""Requests made from the server's own description: none breaks it, and every answer is as described."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from haggle.sop.task import load_task
from haggle.trade.world_io import named_world
from serving.engines import EngineConfig
from serving.engines.config import ScriptedOptions
from serving.engines.scripted import ScriptedEngine
from serving.http.app import Limits, make_app

schemathesis = pytest.importorskip("schemathesis")
TALK = '{"last":"","state":"CASUAL","say":"Fine weather."}'
EXAMPLES = 4


def application():
    options = ScriptedOptions(answers=(TALK,), again=True)
    engine = ScriptedEngine(EngineConfig(engine="scripted", scripted=options))
    shop, keeper = named_world("frontier_shop"), load_task("gatekeeper")
    return make_app(
        engine, {shop.name: shop}, "state", tasks={keeper.task: keeper}, limits=Limits(sessions=20)
    )


@pytest.fixture(scope="module")
def schema():
    return schemathesis.openapi.from_asgi("/openapi.json", application())


def test_no_request_breaks_the_server(schema):
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    checks = [
        not_a_server_error, status_code_conformance, content_type_conformance,
        response_schema_conformance,
    ]  # fmt: skip
    asked = 0
    for found in schema.get_all_operations():
        operation = found.ok()

        @given(case=operation.as_strategy())
        @settings(
            max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
            phases=[Phase.generate], suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        def ask(case):
            case.call_and_validate(checks=checks)

        ask()
        asked += 1
    assert asked == schema.statistic.operations.total > 15
