"""`haggle eval coherence`: how coherent the talks of a planner are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from haggle.cli.options import Batch, Quiet
from haggle.core.errors import HaggleError


def coherence(
    out: Annotated[Path, typer.Option(help="The --out of a finished haggle eval planner.")],
    judge: Annotated[
        str | None, typer.Option(help="Who judges: a serve config, a strong model best.")
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(help="Or people's scores: JSON Lines of id and coherence (0-1).")
    ] = None,
    batch: Batch = 8,
    quiet: Quiet = False,
) -> None:
    """Score how coherent a planner's talks with users are, 0 to 1 (PCA, Table 6); resumes."""
    from eval.sop.coherence import import_coherence, judge_coherence
    from haggle.cli.tables import print_rates
    from serving.engines import open_engine

    if (judge is None) == (scores is None):
        raise HaggleError(
            "say who judges: --judge ENGINE or --scores FILE, one of them",
            where="haggle eval coherence",
        )
    if scores is not None:
        metrics = import_coherence(out, scores)
    else:
        assert judge is not None
        loaded = open_engine(judge, None)
        try:
            metrics = judge_coherence(out, loaded, batch=batch, progress=not quiet)
        finally:
            loaded.close()
    print_rates("coherence", metrics, ("judge", "unscored"))
