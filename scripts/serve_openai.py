"""Serves a GGUF model on this machine to anything that speaks the OpenAI chat protocol:

    python scripts/serve_openai.py                                  the shipped merchant
    python scripts/serve_openai.py --model smollm2-135m-instruct --parallel 2
    python scripts/serve_openai.py --gguf runs/train/model.gguf --port 8081

in the project's environment (extra `llamacpp`). It prints the base URL for `openai.base_url` of
configs/serve/openai.yaml and serves until Ctrl-C.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from haggle.core.errors import HaggleError
from serving.engines import read_engine_config
from serving.engines.common import read_key
from serving.openai_server import LOOPBACK, openai_server
from serving.shipped import with_shipped_model


def main(argv: Sequence[str] | None = None) -> None:
    """Starts the server and waits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", default="llamacpp", help="llamacpp serve config, name or file")
    parser.add_argument("--model", help="a model instead of the config's")
    parser.add_argument("--gguf", type=Path, help="a GGUF file instead of the config's model")
    parser.add_argument("--parallel", type=int, help="requests answered at once")
    parser.add_argument("--context", type=int, help="tokens of each request")
    parser.add_argument("--host", default=LOOPBACK, help="address to listen on")
    parser.add_argument("--port", type=int, default=8080, help="0 takes any free one")
    parser.add_argument("--api-key-env", help="environment variable with the key to ask for")
    options = parser.parse_args(argv)
    config = read_engine_config(options.config)
    names = ("model", "gguf", "parallel", "context")
    changes = {n: value for n in names if (value := getattr(options, n)) is not None}
    if "model" in changes:
        changes.setdefault("gguf", None)
    config = with_shipped_model(type(config).model_validate(config.model_dump() | changes))
    key = read_key(options.api_key_env, "--api-key-env")
    with openai_server(config, host=options.host, port=options.port, api_key=key) as url:
        print(f"serving {config.gguf or config.model} at {url} (Ctrl-C stops it)", flush=True)
        while True:  # a wait without an end could not be interrupted on Windows
            time.sleep(1)


if __name__ == "__main__":
    try:
        main()
    except HaggleError as error:
        raise SystemExit(f"error: {error}") from None
    except KeyboardInterrupt:
        print("stopped")
