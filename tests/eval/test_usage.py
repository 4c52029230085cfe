"""What a service's answers cost stands in the metrics, each answer once, whatever was interrupted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from data_gen.corpus_io import corpus_rows
from eval.cases import run_cases
from eval.experiment import EvalConfig, close_engines, run_experiment
from eval.journal import USAGE
from eval.report import write_report
from eval.turns import run_turns
from eval.usage import Meter, describe
from haggle.core.engine import Generation, GenerationRequest
from haggle.core.errors import HaggleError
from haggle.core.storage import read_json
from haggle.grammar.json_text import to_json
from serving.engines import EngineConfig, load_engine
from serving.engines.accounting import ApiUsage

PRICES = {"input": 1.0, "output": 10.0, "as_of": "2026-11"}
READ, WRITTEN = 1000, 100
COST = (READ * 1.0 + WRITTEN * 10.0) / 1_000_000
ANSWER = to_json({"last": "", "state": "CASUAL", "say": "Well met."})


@dataclass
class Service:
    """An OpenAI-compatible stand-in: answers as `version` so often, then refuses the key."""

    url: str = ""
    version: str = "m-2026-11"
    until: int = 10**9
    asked: int = 0
    running: list[Any] = field(default_factory=list)

    def start(self, **options: Any) -> Any:
        pytest.importorskip("openai")
        given = {"base_url": self.url, "prices": PRICES, "first_wait_s": 0.01} | options
        config = EngineConfig.model_validate({"engine": "openai", "model": "m", "openai": given})
        self.running.append(load_engine(config))
        return self.running[-1]


@pytest.fixture
def service() -> Iterator[Service]:
    """A service on the loopback."""
    state = Service()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            state.asked += 1
            refused = state.asked > state.until
            message = {"role": "assistant", "content": ANSWER}
            body: dict[str, Any] = {
                "id": "x", "object": "chat.completion", "created": 0, "model": state.version,
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": READ, "completion_tokens": WRITTEN, "total_tokens": 0},
            }  # fmt: skip
            data = json.dumps({"error": {"message": "no"}} if refused else body).encode()
            self.send_response(401 if refused else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    yield state
    close_engines()
    for engine in state.running:
        engine.close()
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "test.jsonl"
    rows = [row for _, row in zip(range(4), corpus_rows("test"), strict=False)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def cases(tmp_path: Path) -> tuple[Path, Path]:
    """Three hand-written cases, and the directory of their shop."""
    world = "merchant: {name: Ada, persona: Calm.}\ncurrency: gold\nitems:\n  - {item_id: axe, item_name: Axe, price: 9, quantity: 1}\n"
    (tmp_path / "worlds").mkdir()
    (tmp_path / "worlds" / "stall.yaml").write_text(world, encoding="utf-8")
    lines = [
        {"id": f"c{n}", "world": "stall", "player": f"hi {n}", "gold": {"states": ["CASUAL"]}}
        for n in range(3)
    ]
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path, tmp_path / "worlds"


def settings(*names: str, **fields: Any) -> EvalConfig:
    runs = [{"name": name, "engine": "openai", "guard": "off"} for name in names or ("a",)]
    given = {"runs": runs, "dialogues": 2, "scenarios": ["specific_items"], "max_rounds": 2}
    return EvalConfig.model_validate(given | fields)


def paid(usage: dict[str, Any], answers: int, version: str = "m-2026-11") -> None:
    """Holds a usage against so many answers."""
    assert usage["answers"] == answers
    assert usage["prompt_tokens"] == READ * answers
    assert usage["completion_tokens"] == WRITTEN * answers
    assert usage["cost"] == pytest.approx(COST * answers)
    assert (usage["currency"], usage["prices_as_of"]) == ("USD", "2026-11")
    assert usage["model_versions"] == {version: answers}


def test_turns_say_what_they_cost_and_who_answered(service, dataset, tmp_path):
    metrics = run_turns(dataset, service.start(), tmp_path, n=6, batch=2, progress=False)
    paid(metrics["usage"], 6)
    assert read_json(tmp_path / "metrics.json")["usage"] == metrics["usage"]
    assert not (tmp_path / USAGE).exists()


def test_cases_say_so_too(service, cases, tmp_path):
    metrics = run_cases(
        cases[0], cases[1], service.start(), "off", tmp_path / "out", progress=False
    )
    paid(metrics["usage"], 3)


def test_what_an_interrupted_run_paid_is_not_forgotten(service, dataset, tmp_path):
    service.until = 3
    with pytest.raises(HaggleError, match="401"):
        run_turns(dataset, service.start(), tmp_path, n=6, batch=1, progress=False)
    service.until = 10**9
    metrics = run_turns(dataset, service.start(), tmp_path, n=6, batch=1, progress=False)
    paid(metrics["usage"], 6)
    assert metrics["usage"]["failures"] == 1


def test_a_run_of_another_model_does_not_inherit_the_bill(service, dataset, tmp_path):
    service.until = 2
    with pytest.raises(HaggleError):
        run_turns(dataset, service.start(), tmp_path, n=6, batch=1, progress=False)
    service.until = 10**9
    other = service.start()
    other.model = "another"
    paid(run_turns(dataset, other, tmp_path, n=6, batch=1, progress=False)["usage"], 6)


def test_an_engine_in_this_process_has_no_bill(cases, tmp_path):
    class Local:
        name, model = "local", "m"

        def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
            return [Generation(ANSWER) for _ in requests]

        def stream(self, request: GenerationRequest) -> Iterator[str | Generation]:
            yield Generation(ANSWER)

        def close(self) -> None: ...

    metrics = run_cases(cases[0], cases[1], Local(), "off", tmp_path / "out", progress=False)
    assert "usage" not in metrics and list(describe({})) == []


def test_runs_that_share_an_engine_are_billed_apart(service, tmp_path):
    config = settings("a", "b")
    metrics = run_experiment(config, tmp_path, start=lambda run: service.start(), progress=False)
    each = [sum(1 for _ in _turns(tmp_path / name)) for name in ("a", "b")]
    assert len(service.running) == 1 and sum(each) == service.asked
    for result, answers in zip(metrics["results"], each, strict=True):
        paid(result["usage"], answers)


def test_a_resumed_experiment_adds_up_its_bill_and_a_finished_one_keeps_it(service, tmp_path):
    def start(run: Any) -> Any:
        return service.start()

    service.until = 3
    with pytest.raises(HaggleError, match="401"):
        run_experiment(settings(), tmp_path, start=start, progress=False)
    close_engines()
    service.until, service.version = 10**9, "m-2026-12"
    metrics = run_experiment(settings(), tmp_path, start=start, progress=False)
    usage = metrics["results"][0]["usage"]
    assert usage["model_versions"] == {"m-2026-11": 3, "m-2026-12": usage["answers"] - 3}
    assert usage["answers"] == service.asked - 1, "the refused request gave no answer"
    assert run_experiment(settings(), tmp_path, start=start, progress=False) == metrics


def test_the_report_says_what_a_run_cost(service, tmp_path):
    metrics = run_experiment(
        settings(), tmp_path, start=lambda run: service.start(), progress=False
    )
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "answers as m-2026-11" in page and "USD at prices of 2026-11" in page
    del metrics["results"][0]["usage"]
    write_report(metrics, tmp_path / "older.html")
    assert "answers as" not in (tmp_path / "older.html").read_text(encoding="utf-8")


def _turns(folder: Path) -> Iterator[Any]:
    for path in folder.glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield from json.loads(line)["turns"]


@dataclass
class Counting:
    """An engine that counts for itself."""

    name: str = "counting"
    model: str = "m"
    total: ApiUsage = field(default_factory=ApiUsage)

    def usage(self) -> ApiUsage:
        return self.total


@pytest.mark.parametrize("kept", [True, False])
def test_a_meter_tells_its_own_part_alone(tmp_path: Path, kept: bool):
    one: Any = Counting(total=ApiUsage(answers=5, cost=0.1, model_versions={"x": 5}))
    meter = Meter(one, tmp_path / USAGE)
    assert meter.read()["answers"] == 0 and meter.read()["model_versions"] == {}
    one.total = ApiUsage(answers=7, cost=0.3, model_versions={"x": 5, "y": 2})
    assert meter.read()["cost"] == 0.2 and meter.read()["model_versions"] == {"y": 2}
    if kept:
        meter.keep()
    again = Meter(one, tmp_path / USAGE)
    one.total = ApiUsage(answers=8, cost=0.4, model_versions={"x": 5, "y": 3})
    assert again.read()["answers"] == (3 if kept else 1)
