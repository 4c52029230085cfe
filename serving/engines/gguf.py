"""What a GGUF file says of its model, found without reading the whole of it."""

from __future__ import annotations

import contextlib
import mmap
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path

from haggle.core.errors import HaggleError

ARRAY_OF_STRINGS = (9).to_bytes(4, "little") + (8).to_bytes(4, "little")


@contextlib.contextmanager
def mapped(gguf: Path) -> Iterator[mmap.mmap]:
    with gguf.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def _behind(data: mmap.mmap, text: str) -> int | None:
    """Where a string that stands in a GGUF as an entry of its own ends, or None without one."""
    encoded = text.encode("utf-8")
    at = data.find(len(encoded).to_bytes(8, "little") + encoded)
    return at + 8 + len(encoded) if at >= 0 else None


def has_text(data: mmap.mmap, text: str) -> bool:
    """Whether a string stands in a GGUF as an entry of its own."""
    return _behind(data, text) is not None


def gguf_number(gguf: Path, key: str) -> int | None:
    """An entry of type uint32 of a GGUF, found without reading its whole vocabulary."""
    with mapped(gguf) as data:
        at = _behind(data, key)
        return None if at is None else int.from_bytes(data[at + 4 : at + 8], "little")


def gguf_text(gguf: Path, key: str) -> str | None:
    """An entry of type string of a GGUF, found without reading its whole vocabulary."""
    with mapped(gguf) as data:
        at = _behind(data, key)
        if at is None:
            return None
        first = at + 12  # behind the type and the length
        length = int.from_bytes(data[at + 4 : first], "little")
        return data[first : first + length].decode("utf-8", errors="replace")


class Vocabulary:
    """A model's tokens as texts, sorted. Bytes that are no whole character become U+FFFD."""

    def __init__(self, tokens: Iterator[str] | list[str]) -> None:
        self._sorted = sorted({token for token in tokens if token})

    def longer(self, beginning: str) -> Iterator[str]:
        """The tokens that begin so and go on."""
        at = bisect_left(self._sorted, beginning)
        found = takewhile(lambda i: self._sorted[i].startswith(beginning), range(at, len(self)))
        return (self._sorted[i] for i in found if len(self._sorted[i]) > len(beginning))

    def __len__(self) -> int:
        return len(self._sorted)

    def count(self, text: str) -> int:
        """About how many tokens a text has: the longest that fits comes first."""
        count = 0
        while text:
            size = len(text)
            while size > 1 and not self._has(text[:size]):
                size -= 1
            text, count = text[size:], count + 1
        return count

    def _has(self, token: str) -> bool:
        at = bisect_left(self._sorted, token)
        return at < len(self) and self._sorted[at] == token


def vocabulary(gguf: Path) -> Vocabulary | None:
    """The tokens of a GGUF; None where it does not list them as expected."""
    key = b"tokenizer.ggml.tokens" + ARRAY_OF_STRINGS
    with mapped(gguf) as data:
        at = data.find(key)
        if at < 0:
            return None
        byte_level = has_text(data, "gpt2")
        at += len(key)
        left = int.from_bytes(data[at : at + 8], "little")
        at += 8
        tokens = []
        for _ in range(left):
            size = int.from_bytes(data[at : at + 8], "little")
            tokens.append(data[at + 8 : at + 8 + size].decode("utf-8", errors="replace"))
            at += 8 + size
    return Vocabulary([_text(token) if byte_level else token.replace("▁", " ") for token in tokens])


@cache
def _bytes_of_characters() -> dict[str, int]:
    """Which byte a character stands for in byte-level tokens (GPT-2 and all after it)."""
    shown = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(b): b for b in shown} | {chr(256 + n): b for n, b in enumerate(hidden)}


def _text(token: str) -> str:
    """A byte-level token as text; a special token stays as it is."""
    known = _bytes_of_characters()
    if any(character not in known for character in token):
        return token
    return bytes(known[character] for character in token).decode("utf-8", errors="replace")


def lora_file(adapter: Path) -> Path:
    """The LoRA GGUF: the file itself, or the only one in an adapter directory."""
    adapter = adapter.expanduser()
    files = sorted(adapter.glob("*.gguf")) if adapter.is_dir() else [adapter]
    if len(files) != 1 or not files[0].is_file():
        raise HaggleError(
            f"found {len(files) if adapter.is_dir() else 'no'} LoRA GGUF there",
            where=str(adapter),
            hint="give the .gguf file that `haggle export` wrote",
        )
    return files[0]
