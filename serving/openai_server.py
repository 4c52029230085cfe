"""A GGUF model behind an OpenAI-compatible endpoint on this machine: llama.cpp's own server.

For teachers and players that speak to a service, and for trying the `openai` engine without one
(`python scripts/serve_openai.py` starts it from a shell).
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from haggle.core.errors import HaggleError
from haggle.weights.threads import brief_waits
from serving.engines import EngineConfig
from serving.engines.llamacpp_engine import gguf_file, server_params, start_server

LOOPBACK = "127.0.0.1"


@contextmanager
def openai_server(
    config: EngineConfig, *, host: str = LOOPBACK, port: int = 0, api_key: str | None = None
) -> Iterator[str]:
    """Serve a llama.cpp config's model while the block runs; yields the base URL ("http://.../v1").

    Port 0 takes any free one. Answers name the model as the file is called. `parallel` requests are
    answered at once, with `context` tokens each. Raises HaggleError when the port is taken or the
    model cannot be loaded.
    """
    if config.engine != "llamacpp":
        raise HaggleError(
            f"engine {config.engine!r} has no server of this kind",
            where="engine",
            hint="give a llamacpp config; for vLLM run its own `vllm serve MODEL`",
        )
    with brief_waits():
        import xllamacpp

    path = gguf_file(config)
    params = server_params(xllamacpp, config, path)
    params.hostnames = [host]
    params.port = port or _free_port(host)
    params.api_keys = [api_key] if api_key else []
    params.model_alias = {path.stem}
    check_port(host, params.port)
    server = start_server(xllamacpp, params, path)
    try:
        yield f"http://{host}:{params.port}/v1"
    finally:
        del server


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def check_port(host: str, port: int) -> None:
    """Raise HaggleError where nothing can listen there."""
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise HaggleError(
            f"is no address: {error.strerror}", where=host, hint="check --host"
        ) from None
    try:
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise HaggleError(
            f"cannot listen there: {error.strerror}",
            where=f"{host}:{port}",
            hint="choose another --port, or check --host",
        ) from None
