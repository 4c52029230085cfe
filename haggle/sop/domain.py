"""A standard operating procedure as a domain: a line is a user state, an answer is a step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from haggle.core.agent import Say
from haggle.core.codec import ActionSpec
from haggle.core.config import Record
from haggle.core.domain import Guard, Level, Ruling, Verdict, Withheld
from haggle.core.engine import Message
from haggle.core.episode import Episode, latest
from haggle.core.text import clean_utterance, neutralise_markup, player_message, prompts
from haggle.core.turn import Turn
from haggle.grammar.json_text import DecodeError, is_strict_json, read_object, to_json
from haggle.grammar.values import Choice, Either, Field, Fields, Label, Spoken, Value, read
from haggle.sop.definition import START
from haggle.sop.evidence import read_evidence
from haggle.sop.task import Task

METHOD = "sop"  # the one way that its models are asked
MAX_EXCHANGES = 12
LONGEST_FACT = 300  # characters in the prompt; public tasks bring whole documents
PROMPTS = Path(__file__).parent / "prompts"


class Action(Record):
    """What the character does in a turn: the user state it reads, the step it takes, its line."""

    user: str
    act: str
    say: str

    def text(self) -> str:
        """The action as a model writes it."""
        return to_json(self.model_dump())


def _fields(users: Iterable[str], acts: Iterable[str]) -> tuple[Field, Field]:
    """One of these user states, and one of these steps."""
    return Field("user", Label(tuple(users))), Field("act", Label(tuple(acts)))


_SAY = Field("say", Spoken())


@dataclass(frozen=True, slots=True)
class Legal:
    """The actions that may be decoded: by user state, the steps that may answer it. They end
    before the line where none is `spoken`."""

    answers: tuple[tuple[str, tuple[str, ...]], ...]
    spoken: bool = True

    def tree(self) -> Value:
        """All answers that may be given. Raises ValueError where there is none."""
        rows = tuple(_fields([user], acts) for user, acts in self.answers if acts)
        if not rows:
            raise ValueError("a constraint needs at least one user state with an action")
        if not self.spoken:
            return Either(tuple(Fields(row) for row in rows))
        return Fields((Choice(rows), _SAY))


class Talk(Episode):
    """A conversation by a task. `path` are the user states and actions so far, as vertices are
    named; `last` is the last step of the procedure."""

    def __init__(self, task: Task) -> None:
        super().__init__(task.procedure)
        self.task = task
        self.path: tuple[str, ...] = ()
        self._system = _system(task)

    @property
    def success(self) -> bool:
        """Whether a step or user state that marks success was reached."""
        return bool(set(self.task.conversation_profile.success_mark) & set(self.path))

    def answers(self) -> dict[str, list[str]]:
        """By user state, the actions that may come now."""
        return self.task.answers(self.last)

    def messages(
        self, line: str | None = None, limit: int | None = MAX_EXCHANGES
    ) -> tuple[Message, ...]:
        """Chat messages so far, ending with `line` when one is given."""
        found = [Message("system", self._system)]
        for exchange in latest(self.exchanges, limit):
            found += exchange.messages()
        if line is not None:
            found.append(Message("user", player_message(self.note, clean_utterance(line))))
        return tuple(found)

    @property
    def note(self) -> str:
        """Where the procedure stands, as the next line will be preceded by it."""
        return f"step {self.last or START}"


class SopTurn(Turn):
    """One round of a procedure. `user_state` is what the character took the line for."""

    user_state: str = ""
    act: str = ""
    line: str = ""
    success: bool = False

    @property
    def says(self) -> str:
        """What the character says."""
        return self.line


@dataclass(frozen=True, slots=True)
class SopOutcome:
    """A step that was taken, and what is said with it."""

    action: Action
    interventions: tuple[str, ...] = ()


class Procedural:
    """Working through a procedure (PCA): a `haggle.core.domain.Domain` of talks."""

    methods = (METHOD,)
    options = ("profile",)

    def agreement(self, right: str, answer: str, line: str) -> Verdict:
        """Compare the user state, which is the `last` of a talk, and the step taken."""
        gold = read_object(right)
        try:
            given = read_object(answer)
        except DecodeError:
            return Verdict(valid=False, last=False, state=False)
        return Verdict(
            valid=is_strict_json(answer),
            last=given.get("user") == gold["user"],
            state=given.get("act") == gold["act"],
        )

    def read_ahead(self, talk: Talk) -> None:
        """Nothing: no line of a talk waits."""

    def messages(self, talk: Talk, line: str) -> tuple[Message, ...]:
        """What the model is asked."""
        return talk.messages(line)

    def legal(self, talk: Talk, guard: Guard) -> Legal | None:
        """Guard `state`: only what the procedure allows now; `schema`: any pair of names."""
        if guard == "off":
            return None
        answers = talk.answers()
        if guard == "schema":
            acts = [name for name in talk.task.agent_action if name != START]
            answers = {user: acts for user in talk.task.user_state}
        return Legal(tuple((user, tuple(acts)) for user, acts in answers.items()))

    def max_tokens(self, talk: Talk, compact: int) -> int:
        """Answers are compact."""
        return compact

    def decode(self, talk: Talk, text: str) -> Action:
        """The action that a text is."""
        form = Fields((*_fields(talk.task.user_state, talk.procedure.states), _SAY))
        return Action(**read(form, read_object(text, Action.model_fields)))

    def rule(self, talk: Talk, line: str, action: Action, level: Level) -> Ruling[Action]:
        """Only steps that the procedure allows after this user state, and a state that needs
        evidence only with it; else the last step again."""
        if action.act in talk.answers().get(action.user, ()):
            return Ruling(action) if level == "written" else self._shown(talk, line, action)
        skips = talk.procedure.breaks_critical(talk.last, action.act)
        return Ruling(action).because("critical" if skips else "transition", None)

    def _shown(self, talk: Talk, line: str, action: Action) -> Ruling[Action]:
        """The action, where the line is evidence of the user state that the model reads in it."""
        wanted = talk.task.evidence.get(action.user)
        if wanted is None:
            return Ruling(action)
        found = read_evidence(line, wanted, talk.task.user_profile)
        if found.holds:
            return Ruling(action)
        withheld = Withheld("evidence", found.doubt)
        return replace(Ruling(action), withheld=withheld).because("evidence", None)

    def unsure(self, talk: Talk, line: str, action: Action) -> Ruling[Action] | None:
        """Steps are taken, not asked about."""
        return None

    def apply(self, talk: Talk, line: str, ruling: Ruling[Action], level: Level) -> SopOutcome:
        """The step is taken as it stands."""
        assert ruling.action is not None
        told = tuple(ruling.reasons)
        outcome = SopOutcome(ruling.action, told)
        return outcome if ruling.action.say.strip() else self.said_safely(talk, outcome)

    def speaks_after(self, talk: Talk) -> bool:
        """The line comes with the step."""
        return False

    def observed(self, talk: Talk, line: str, outcome: SopOutcome) -> tuple[Message, ...]:
        """The step as it was taken; nothing else comes of one."""
        taken = Message("assistant", to_json(outcome.action.model_dump(exclude={"say"})))
        return (*talk.messages(line), taken)

    def sayable(self, talk: Talk, line: str, outcome: SopOutcome) -> ActionSpec:
        """Lines are free."""
        return Say()

    def worded(self, talk: Talk, outcome: SopOutcome, say: str) -> SopOutcome:
        """The same step in another line."""
        return replace(outcome, action=outcome.action.model_copy(update={"say": say}))

    def degraded(self, talk: Talk, reason: str) -> SopOutcome:
        """The last step again, or the first, in a line of code's own."""
        answers = talk.answers()
        user = next(name for name in (*talk.task.asides, *answers) if answers.get(name))
        acts = answers[user]
        act = talk.last if talk.last in acts else acts[0]
        action = Action(user=user, act=act, say=talk.task.lines[act])
        return SopOutcome(action, (reason, "degraded"))

    def said_safely(self, talk: Talk, outcome: SopOutcome, line: str = "") -> SopOutcome:
        """The same step in a line of code's own."""
        said = line or talk.task.lines[outcome.action.act]
        interventions = (*outcome.interventions, "safe_line")
        return replace(self.worded(talk, outcome, said), interventions=interventions)

    def problem(
        self,
        talk: Talk,
        outcome: SopOutcome,
        proposed: Action,
        level: Level,
        failed: Sequence[str],
    ) -> str:
        """Lines are free as yet."""
        return ""

    def failures(self, talk: Talk, outcome: SopOutcome) -> list[str]:
        """Steps against the procedure, and mandatory ones skipped."""
        act, last = outcome.action.act, talk.last
        found = {
            "transition": act in talk.answers().get(outcome.action.user, ()),
            "critical": not talk.procedure.breaks_critical(last, act),
        }
        return [name for name, passed in found.items() if not passed]

    def settle(
        self,
        talk: Talk,
        line: str,
        action: Action | None,
        ruling: Ruling[Action],
        outcome: SopOutcome,
        turn: Turn,
    ) -> SopTurn:
        """Move the talk on, and complete the record."""
        done = outcome.action
        said = neutralise_markup(done.text())
        talk.record(talk.note, clean_utterance(line), said)
        talk.path = (*talk.path, f"User.{done.user}", f"Agent.{done.act}")
        before, talk.state = talk.last, done.act
        state = talk.procedure.state(done.act)
        talk.last = talk.last if state.transparent else done.act
        return SopTurn(
            **{name: getattr(turn, name) for name in Turn.model_fields if name not in _OWN},
            last=before,
            state=done.act,
            proposed_state=action.act if action else "",
            user_state=done.user,
            act=done.act,
            line=done.say,
            success=talk.success,
        )


_OWN = {"last", "state", "proposed_state"}
SOP = Procedural()


def _system(task: Task) -> str:
    """The system message of a task."""
    names = [*task.user_state, *task.agent_action]
    template = prompts(PROMPTS).get_template("compact.jinja")
    return template.render(
        profile=task.conversation_profile,
        facts=[fact[:LONGEST_FACT] for fact in task.conversation_profile.facts.values()],
        user_states=task.user_state,
        actions=[name for name in task.agent_action if name != START],
        meaning={n: f"{n}: {task.briefs[n]}" if n in task.briefs else n for n in names},
        mandatory=task.mandatory,
    ).strip()
