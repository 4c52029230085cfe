"""A model as the player, prompted after the SIBP paper's Appendices B (specific items) and C
(recommendations). The first line is never its own: the seed fixes it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from data_gen.teachers.asking import (
    Asking,
    Rejected,
    checked_ending,
    prompt,
    refuse_echo,
    until_accepted,
)
from data_gen.teachers.config import PlayerConfig
from data_gen.teachers.reading import bare_line
from data_gen.teachers.report import RoleTally
from haggle.core.engine import Generation, GenerationRequest, Message
from haggle.core.text import MAX_UTTERANCE, clean_utterance, neutralise_markup
from haggle.trade.procedure import Procedure
from haggle.trade.records import Scenario, TurnRecord
from haggle.trade.session import MAX_EXCHANGES
from haggle.trade.world import World

END = "End"
LABELS = "sibp"  # the alias table of the procedure whose labels the players' prompts use
SPEAKERS = ("Player", "Customer")


class GivenUp(Exception):
    """No usable line came after all attempts."""


class LlmPlayer:
    """A model with a shopping bag."""

    def __init__(self, config: PlayerConfig) -> None:
        self.config = config

    def line(
        self,
        world: World,
        scenario: Scenario,
        procedure: Procedure,
        turns: Sequence[TurnRecord],
        seed: int,
        tally: RoleTally,
    ) -> Asking[str | None]:
        """The next line after `turns`; None when the model says End. Raises GivenUp."""
        request = self.request(world, scenario, procedure, turns, seed)

        def accept(_: int, answer: Generation) -> str | None:
            line = self.accept(answer, world, turns)
            refuse_echo(line or "", request)
            return line

        lines = yield from until_accepted(
            "player", [request], accept, self.config.max_attempts, tally
        )
        if not lines:
            raise GivenUp
        return lines[0]

    def request(
        self,
        world: World,
        scenario: Scenario,
        procedure: Procedure,
        turns: Sequence[TurnRecord],
        seed: int,
    ) -> GenerationRequest:
        """What the model is asked for its next line."""
        labels = {ours: theirs for theirs, ours in procedure.aliases.get(LABELS, {}).items()}
        system = prompt(
            "player",
            scenario=scenario,
            game_items=json.dumps(
                [{"item_id": i.item_id, "item_name": i.item_name} for i in world.items],
                ensure_ascii=False,
            ),
            ending=sorted(labels.get(n, n) for n, s in procedure.states.items() if s.clears),
        )
        rounds = [
            {
                "player": clean_utterance(turn.player),
                "label": labels.get(turn.state, turn.state),
                "npc": clean_utterance(turn.response.npc_dialogue),
            }
            for turn in turns[-MAX_EXCHANGES:]
        ]
        messages = (
            Message("system", system),
            Message("user", prompt("player_history", rounds=rounds)),
        )
        return GenerationRequest(
            messages,
            max_tokens=self.config.max_tokens,
            temperature=self.config.temperature,
            seed=seed,
        )

    def accept(self, answer: Generation, world: World, turns: Sequence[TurnRecord]) -> str | None:
        """The line in an answer, None for End. Raises Rejected with the reason."""
        text = checked_ending(answer)
        if is_end(text.splitlines()[0]):
            return None
        try:
            line = bare_line(text, SPEAKERS)
        except ValueError as error:
            raise Rejected("lines", f"{error}; write the player's next line only") from None
        if is_end(line):
            return None
        if not any(c.isalnum() for c in line):
            raise Rejected("empty", "it said nothing")
        if neutralise_markup(line) != line or "__" in line:
            raise Rejected("markup", "it held chat markup or placeholders; write plain words")
        if line.startswith(("{", "[", "```")):
            raise Rejected("format", "it was no spoken line; write plain words")
        if len(line) > MAX_UTTERANCE:
            raise Rejected("long", f"it was longer than {MAX_UTTERANCE} characters")
        speaker = line.split(":", 1)[0].strip().casefold() if ":" in line else ""
        merchant = world.merchant.name.casefold()
        if speaker in {"npc", "merchant", "shopkeeper", merchant} or speaker.startswith("npc ("):
            raise Rejected("role", "it was a merchant's line; you are the customer")
        said = {_plain(turn.response.npc_dialogue) for turn in turns}
        if _plain(line) in said:
            raise Rejected("role", "it repeated the merchant's words; you are the customer")
        if turns and _plain(line) == _plain(turns[-1].player):
            raise Rejected("repeated", "it was the line said just before; go on from there")
        return clean_utterance(line)


def is_end(text: str) -> bool:
    """Whether a line is the closing word of the players' prompts."""
    word = text.strip().strip("\"'“”.!*` ").casefold().removeprefix("player:").strip("\"'“”.!*` ")
    return word == END.casefold()


def _plain(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())
