"""A sale closed by the game's own call (`Session.confirm`), not by words."""

from __future__ import annotations

import secrets

from haggle.core.errors import HaggleError
from haggle.trade.lines import lines
from haggle.trade.records import TurnRecord
from haggle.trade.resolve import finish
from haggle.trade.response import MerchantResponse
from haggle.trade.session import Session
from haggle.trade.shared_stock import carried, refused
from haggle.trade.wire import Proposal

BY_HAND = "(confirms)"
_NOTHING = MerchantResponse(context_type="", npc_dialogue="")  # before the answer is made


def confirmed(session: Session, review_id: str) -> TurnRecord:
    """Commit the sale of the review on the table. Raises HaggleError when its id is another.

    Where others bought of the goods meanwhile the merchant says so instead, and nothing is sold.
    """
    review = session.review
    if review is None:
        raise HaggleError(
            "there is no review to confirm",
            where="review",
            hint="it was never made, was used or turned down, or the order has changed since; let "
            "the merchant review the order again",
        )
    if not secrets.compare_digest(review_id.encode(), review.id.encode()):
        raise HaggleError(
            f"no review {review_id[:40]!r} is on the table",
            where="review",
            hint="confirm the id of the latest review",
        )
    said = TurnRecord(
        player=BY_HAND, raw="", response=_NOTHING, last=session.last, state=session.state
    )
    if not session.review_holds:
        return refused(session, said, "stock")
    procedure = session.procedure
    mandatory = next(name for name in procedure.tracked if procedure.is_review(name))
    state = procedure.after_review(mandatory)
    proposal = Proposal(last=mandatory, state=state, say=lines().safe[state])
    resolved = finish(session, proposal, dict(session.cart), session.sale_price)
    return carried(session, resolved, said)
