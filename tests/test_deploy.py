"""The compose file names what `haggle serve` has, and hands every secret in by the environment."""

from __future__ import annotations

import typer
import yaml

from haggle.cli import app
from haggle.core.config import ROOT

COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))


def test_every_option_of_the_servers_exists() -> None:
    serve = typer.main.get_command(app).commands["serve"]  # type: ignore[attr-defined]
    known = {name for parameter in serve.params for name in parameter.opts}
    for name in ("first", "second"):
        program, command, *options = COMPOSE["services"][name]["command"]
        assert (program, command) == ("haggle", "serve")
        assert {option.partition("=")[0] for option in options} <= known


def test_secrets_come_from_the_environment_and_data_has_a_volume() -> None:
    services = COMPOSE["services"]
    assert services["database"]["environment"]["POSTGRES_PASSWORD"].startswith("${")
    assert services["first"]["environment"]["HAGGLE_KEY"].startswith("${HAGGLE_KEY:?")
    assert {"ledger", "models"} == set(COMPOSE["volumes"])
    proxied = services["proxy"]["command"]
    assert "first:8000" in proxied and "second:8000" in proxied


def test_the_image_has_what_a_server_needs() -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    assert "llamacpp,http,postgres" in text and "USER haggle" in text
    assert (ROOT / "requirements" / "lock.txt").is_file()
