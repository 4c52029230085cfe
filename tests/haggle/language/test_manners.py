"""Hats, purses and farewells: what stands beside a yes, and what ends a talk."""

from __future__ import annotations

import pytest

from haggle.language.evidence import Consent
from haggle.language.terms import Good, Terms

ORDER = Terms((Good("kettle", ("Iron Kettle", "Iron Kettles"), 1),), 45.0, "crowns", "Otto Marsh")


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("*sighs, doffs the hat* Yes.", "affirms"),
        ("Yes, nothing is forgotten.", "affirms"),
        ("Yes, and let the pact be sealed!", "affirms"),
        ("Yes. *puts my wallet back*", "open"),
        ("Yes. *takes his purse*", "open"),
        ("ok *the merchant nods*", "open"),
        ("ok *his heart*", "open"),
        ("nothing is forgotten", "open"),
        ("fine, ano thanks", "open"),
        ("ja ja, sure", "open"),
        ("let the contract be struck", "open"),
    ],
)
def test_what_a_hat_and_a_purse_say(line, verdict):
    assert Consent(line).answer(ORDER).verdict == verdict


@pytest.mark.parametrize(
    ("line", "abusive"),
    [
        ("bye, the dog must go out", False),
        ("Now I go to the train.", False),
        ("goodbye, you filthy swindler", True),
        ("Bye, thief!", True),
        ("Go to blazes!", True),
    ],
)
def test_a_farewell_with_a_dog_in_it_is_no_abuse(line, abusive):
    said = Consent(line)
    assert said.abuses() == abusive and said.leaves()
