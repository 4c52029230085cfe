"""The language that the trade speaks: the one place that names it.

Another language is a folder `haggle/language/<name>` that reads lines, a folder
`haggle/trade/<name>` with the words of the trade, and these imports.
"""

from __future__ import annotations

from pathlib import Path

from haggle.language.english.cues import CUES, Words
from haggle.language.english.line import plural_name
from haggle.language.english.linker import English as DefaultLinker
from haggle.language.english.numbers import DIGITS, TENS, UNITS, numbers_in
from haggle.language.english.synonyms import nicknames
from haggle.trade.english import patterns

FOLDER = Path(patterns.__file__).parent

__all__ = ["CUES", "DIGITS", "FOLDER", "TENS", "UNITS", "DefaultLinker", "Words"]
__all__ += ["nicknames", "numbers_in", "patterns", "plural_name"]
