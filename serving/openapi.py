"""The OpenAPI file that clients in other languages are made from.

python -m serving.openapi --out clients/openapi.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from haggle.core.storage import atomic_write_text
from haggle.trade.world_io import named_world
from serving.engines.scripted import ScriptedEngine
from serving.http.app import make_app


def schema() -> dict[str, Any]:
    """The schema of all routes. It does not depend on engine or shops."""
    shop = named_world("frontier_shop")
    return make_app(ScriptedEngine(()), {shop.name: shop}, "state").openapi()


def main() -> None:
    """Read the command line and write the file."""
    parser = argparse.ArgumentParser(description="Write the OpenAPI file of the server.")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    out = parser.parse_args().out
    atomic_write_text(out, json.dumps(schema(), indent=1, ensure_ascii=False) + "\n")
    print(out)


if __name__ == "__main__":
    main()
