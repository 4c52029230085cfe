"""The characters that are served."""

from __future__ import annotations

from fastapi import APIRouter

from serving.http.records import MERCHANT, Character
from serving.http.server import Server


def character_routes(server: Server) -> APIRouter:
    """Routes of characters."""
    routes = APIRouter(tags=["characters"])

    @routes.get("/characters")
    def characters() -> list[Character]:
        """The merchant, and the characters that work through a procedure."""
        merchant = Character(name=MERCHANT, kind="trade", title="a merchant behind a counter")
        others = [
            Character(
                name=name, kind="sop", title=task.conversation_profile.agent_identity,
                goal=task.conversation_profile.agent_goal,
            )
            for name, task in server.tasks.items()
        ]  # fmt: skip
        return [merchant, *others]

    return routes
