"""The shipped model for the command line, which can build its GGUF file where it is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from serving import shipped

if TYPE_CHECKING:
    from serving.engines import EngineConfig


def with_shipped_model(config: EngineConfig) -> EngineConfig:
    """As `serving.shipped.with_shipped_model`; the GGUF is built at first use (half a minute)."""
    return shipped.with_shipped_model(config, build)


def build(adapter: Path, target: Path) -> Path:
    """Merge the adapter into its base and write it as one GGUF file in `target`."""
    from training.export import export

    print(f"Building {shipped.SHIPPED} from its adapter (once) ...", flush=True)
    result = export(adapter, target, quantizations=(shipped.QUANTIZATION,), verify=False)
    return result.ggufs[shipped.QUANTIZATION]
