"""Which source makes the rows of a config."""

from __future__ import annotations

from data_gen.config import DataConfig
from data_gen.sources import ScriptedSource, Source


def open_source(config: DataConfig) -> Source:
    """The source a config names: scripted, or with a model as teacher or player."""
    if config.procedural:
        return _procedures(config)
    if config.scripted:
        return ScriptedSource(config)
    from data_gen.teachers.source import LlmSource

    return LlmSource(config)


def _procedures(config: DataConfig) -> Source:
    """A source of rows about procedures."""
    if config.plans is not None:
        from data_gen.sop.plans import PlanSource

        return PlanSource(config)
    if config.labelled is not None:
        from data_gen.sop.labelled import LabelledSource

        return LabelledSource(config.labelled)
    if config.sop is not None:
        from data_gen.sop.creation import WrittenSource

        return WrittenSource(config)
    from data_gen.sop.source import SopSource

    return SopSource(config)
