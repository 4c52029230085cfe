"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Engine = Annotated[
    str, typer.Option("--engine", help="A serve config: a name in configs/serve or a YAML file.")
]
CharacterEngine = Annotated[
    str, typer.Option("--engine", help="A serve config; else the shipped model of characters.")
]
Guard = Annotated[str, typer.Option("--guard", help="off, schema or state.")]
Gguf = Annotated[Path | None, typer.Option("--gguf", help="A GGUF file instead of the config's.")]
Model = Annotated[
    str | None,
    typer.Option("--model", help="A model directory or hub id, for transformers and vLLM."),
]
Method = Annotated[
    str | None,
    typer.Option(
        help="Prompting method; else the serve config's, or astp-compact for your own model."
    ),
]
Confirmation = Annotated[
    str | None,
    typer.Option(
        "--confirmation",
        help="What closes a sale: spoken (words) or explicit (a call of its own); else the shop's.",
    ),
]
Embeddings = Annotated[
    str,
    typer.Option(
        "--embeddings",
        help="Answers and nicknames by meaning, a judge of yeses: auto (if installed), on, off.",
    ),
]
Planner = Annotated[
    str,
    typer.Option(
        "--planner",
        help="What chooses the steps: cot, cot+sop, tot, tot+sop, mcts, mcts+sop, best-of-k+sop; "
        "else one answer of the model.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bars.")]
Batch = Annotated[int, typer.Option(min=1, help="Turns at once.")]
WeightsEngine = Annotated[
    str, typer.Option("--engine", help="A serve config of llama.cpp, transformers or vLLM.")
]


def given(context: typer.Context, *names: str) -> dict[str, Any]:
    """Those of the options `names` that the command line has, with their values."""
    sources = {name: context.get_parameter_source(name) for name in names}
    told = [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]
    return {name: context.params[name] for name in told}
