"""The clients in other languages buy from a real server. What cannot run here is skipped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from haggle.core.config import ROOT
from haggle.trade.world_io import named_world
from serving.engines.config import EngineConfig
from serving.engines.scripted import ScriptedEngine
from serving.http.app import make_app
from serving.openapi import schema
from serving.ui.screenshots import served

CLIENTS = ROOT / "clients"
UNITY = CLIENTS / "unity"
SOURCES = [*sorted(UNITY.glob("*.cs")), UNITY / "Examples" / "Buy.cs"]
JSON_NET = Path("/usr/lib/cli/Newtonsoft.Json-5.0/Newtonsoft.Json.dll")
ANSWERS = [
    '{"last":"","state":"OFFER_SELL","cart":[["Sturdy Rope (20m)",2]],"say":"__CART__ for __PRICE__ __CURRENCY__."}',
    '{"last":"OFFER_SELL","state":"FINAL_CHECK","say":"So __CART__ for __PRICE__ __CURRENCY__, yes?"}',
    '{"last":"FINAL_CHECK","state":"COMMIT_SALE","say":"Done."}',
]


def application(engine: ScriptedEngine) -> FastAPI:
    """A server of one shop."""
    shop = named_world("frontier_shop")
    return make_app(engine, {shop.name: shop}, "state")


@pytest.fixture
def address() -> Iterator[str]:
    """The address of a server whose engine offers, reviews and sells, over and over."""
    config = EngineConfig.model_validate(
        {"engine": "scripted", "scripted": {"answers": ANSWERS, "again": True}}
    )
    with served(application(ScriptedEngine(config))) as url:
        yield url


class Breaking:
    """A server whose connection breaks after each turn is stored, the first time it is sent."""

    def __init__(self) -> None:
        self.engine = ScriptedEngine(ANSWERS)
        self.server = application(self.engine)
        self.keys: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or (scope["method"], scope["path"][-6:]) != ("POST", "/turns"):
            await self.server(scope, receive, send)
            return
        key = dict(scope["headers"]).get(b"idempotency-key", b"").decode()
        self.keys.append(key)
        if self.keys.count(key) > 1:
            await self.server(scope, receive, send)
            return
        heard: list[Any] = []

        async def keep(message: Any) -> None:
            heard.append(message)

        await self.server(scope, receive, keep)
        await send(heard[0])
        await send({"type": "http.response.body", "body": b"event: te", "more_body": True})
        raise ConnectionResetError("broken on purpose")


@pytest.fixture
def breaking() -> Iterator[tuple[str, Breaking]]:
    """The address of a server that breaks, and the server."""
    server = Breaking()
    with served(server) as url:  # type: ignore[arg-type]
        yield url, server


def once(printed: str, server: Breaking) -> bool:
    """Whether three lines were sent twice each, and bought what they should, said once."""
    assert len(server.keys) == 6 and len(set(server.keys)) == 3
    return bought(printed) and len(server.engine.requests) == 3


def ran(*words: str, folder: Path = CLIENTS, **variables: str) -> str:
    """What a program prints; it must succeed."""
    done = subprocess.run(
        words, cwd=folder, env=os.environ | variables, capture_output=True, text=True,
        encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def program(*names: str) -> str:
    """The first of these programs that is installed; the test is skipped without one."""
    path = next((path for name in names if (path := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"not installed: {' or '.join(names)}")
    return path


def bought(printed: str) -> bool:
    """Whether an example bought two ropes, and went through the states of a sale."""
    states = ("OFFER_SELL", "FINAL_CHECK", "COMMIT_SALE")
    assert all(f"-> {state}" in printed for state in states), printed
    return "180" in printed


def test_the_openapi_file_is_the_servers_own() -> None:
    kept = json.loads((CLIENTS / "openapi.json").read_text(encoding="utf-8"))
    made = json.loads(json.dumps(schema()))
    hint = "python -m serving.openapi --out clients/openapi.json, then npm run types"
    assert kept["components"] == made["components"], hint
    assert kept["paths"] == made["paths"], hint


def test_the_unity_records_have_fields_of_the_server() -> None:
    schemas = schema()["components"]["schemas"]
    known = {field for part in schemas.values() for field in part.get("properties", {})}
    text = (UNITY / "Records.cs").read_text(encoding="utf-8")
    used = [line.split('"')[1] for line in text.splitlines() if "JsonProperty(" in line]
    assert len(used) > 40 and [name for name in used if name not in known] == []


@pytest.mark.long
def test_javascript_passes_its_own_tests(address: str) -> None:
    node = program("node")
    printed = ran(node, "--test", "test/", folder=CLIENTS / "typescript", HAGGLE_URL=address)
    assert "# fail 0" in printed and "# skipped 0" in printed


@pytest.fixture
def javascript() -> list[str]:
    """The command line of the JavaScript example, without an address."""
    return [program("node"), str(CLIENTS / "typescript" / "examples" / "buy.js")]


@pytest.mark.long
def test_javascript_buys(address: str, javascript: list[str]) -> None:
    assert bought(ran(*javascript, address))


@pytest.mark.long
def test_javascript_says_no_line_twice(
    breaking: tuple[str, Breaking], javascript: list[str]
) -> None:
    url, server = breaking
    assert once(ran(*javascript, url), server)


@pytest.mark.long
def test_typescript_accepts_the_types(tmp_path: Path) -> None:
    compiler = program("tsc")
    (tmp_path / "game.ts").write_text(
        'import { Haggle, type Answer } from "haggle-client";\n'
        'const session = await new Haggle("http://x").open({ shop: "s" });\n'
        'const turn = await session.say("a rope", { onState: (d) => d.cart[0].quantity });\n'
        "export const sold: Answer['sale'] = turn.sale;\n",
        encoding="utf-8",
    )
    package = tmp_path / "node_modules" / "haggle-client"
    package.parent.mkdir()
    shutil.copytree(CLIENTS / "typescript", package)
    options = "--noEmit --strict --target es2022 --module nodenext --lib es2022,dom".split()
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    ran(compiler, *options, "game.ts", folder=tmp_path)


@pytest.mark.long
def test_csharp_buys_on_dotnet(address: str, tmp_path: Path) -> None:
    dotnet = program("dotnet")
    project = tmp_path / "unity"
    shutil.copytree(UNITY, project)
    printed = ran(
        dotnet, "run", "--", address, folder=project,
        DOTNET_CLI_TELEMETRY_OPTOUT="1", DOTNET_NOLOGO="1", DOTNET_CLI_HOME=str(tmp_path),
    )  # fmt: skip
    assert bought(printed)


@pytest.fixture
def csharp(tmp_path: Path) -> list[str]:
    """The command line of the C# example on Mono, without an address."""
    compiler, runtime = program("mcs"), program("mono")
    if not JSON_NET.exists():
        pytest.skip("not installed: libnewtonsoft-json5.0-cil")
    shutil.copy(JSON_NET, tmp_path)
    words = ["-langversion:7", f"-r:{JSON_NET}", "-r:System.Net.Http.dll", "-out:buy.exe"]
    ran(compiler, *words, *map(str, SOURCES), folder=tmp_path)
    return [runtime, str(tmp_path / "buy.exe")]


@pytest.mark.long
def test_csharp_buys_on_mono(address: str, csharp: list[str]) -> None:
    assert bought(ran(*csharp, address))


@pytest.mark.long
def test_csharp_says_no_line_twice(breaking: tuple[str, Breaking], csharp: list[str]) -> None:
    url, server = breaking
    assert once(ran(*csharp, url), server)


@pytest.mark.long
def test_godot_buys(address: str, tmp_path: Path) -> None:
    godot = program("godot4", "godot")
    if not ran(godot, "--version").startswith("4"):
        pytest.skip("not installed: Godot 4")
    project = tmp_path / "godot"
    shutil.copytree(CLIENTS / "godot", project)
    words = ["--headless", "--path", str(project), "--script", "example/buy.gd", "--", address]
    assert bought(ran(godot, *words))


def test_gdscript_can_be_parsed() -> None:
    pytest.importorskip("gdtoolkit")
    scripts = sorted((CLIENTS / "godot").rglob("*.gd"))
    assert len(scripts) == 3
    ran(sys.executable, "-m", "gdtoolkit.parser", *map(str, scripts))


@pytest.mark.long
@pytest.mark.parametrize("language", ["javascript", "csharp"])
def test_a_client_waits_for_a_server_that_starts_later(
    language: str, request: pytest.FixtureRequest
) -> None:
    words = request.getfixturevalue(language)
    with served(application(ScriptedEngine(ANSWERS))) as url:
        port = int(url.rsplit(":", 1)[1])
    with subprocess.Popen(
        [*words, url], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as waiting:
        try:
            assert waiting.stderr
            told = waiting.stderr.readline()  # it has found nobody
            with served(application(ScriptedEngine(ANSWERS)), port):
                printed, _ = waiting.communicate(timeout=120)
        finally:
            waiting.kill()
    assert "again in" in told and bought(printed)
