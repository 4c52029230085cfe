"""From a fresh clone to the demo, in one command:

    python scripts/demo.py [arguments of `haggle demo`]

Sets up `.venv` the first time (a few minutes), then starts in seconds. Runs in the root of the
repository, wherever it is called from: relative paths are meant from there.
"""

from __future__ import annotations

import os
import sys

from bootstrap import DEMO_EXTRAS, ROOT, ensure, hand_over, run_script


def main() -> int:
    """Runs `haggle demo` in the project's environment; its exit code."""
    haggle = ensure(DEMO_EXTRAS).with_name("haggle.exe" if os.name == "nt" else "haggle")
    os.chdir(ROOT)
    return hand_over([str(haggle), "demo", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(run_script(main))
