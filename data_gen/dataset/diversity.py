"""How varied lines are: distinct n-grams, vocabulary, self-BLEU, near duplicates, random samples.

Everything here is fed line by line and gives the same figures for the same lines in the same order.
"""

from __future__ import annotations

import random
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from haggle.core.config import install_hint
from haggle.core.errors import HaggleError

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")

ORDERS = (1, 2, 3)
FLUSH = 200_000  # words, or keys, kept before they are merged into sorted arrays
THRESHOLD = 0.8  # Jaccard similarity from which two sets of shingles are near duplicates
PERMUTATIONS = 128
MISSES_WEIGH = (0.1, 0.9)  # false candidates against misses; candidates are checked anyway
_MIX = 0x9E3779B97F4A7C15  # odd, so that word ids mixed with its powers hardly ever collide
_WORD = re.compile(r"\w+(?:['’]\w+)*")


def words_of(line: str) -> list[str]:
    """The words of a line: letters and digits, casefolded; an apostrophe holds a word together."""
    return _WORD.findall(line.casefold())


def text_key(text: str) -> int:
    """64 bits that stand for a text; the same in every process."""
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())


def needs(library: str) -> HaggleError:
    """What to say where a library of the extra `data` is not installed."""
    return HaggleError(f"{library} is not installed", hint=install_hint("data"))


class KeySet:
    """A set of 64-bit keys at eight bytes each."""

    def __init__(self) -> None:
        import numpy as np

        self._sorted: np.ndarray = np.empty(0, dtype=np.uint64)
        self._fresh = array("Q")

    def add(self, key: int) -> None:
        """Put in one key."""
        self._fresh.append(key)
        if len(self._fresh) >= FLUSH:
            self.keys()

    def update(self, keys: np.ndarray) -> None:
        """Put in many keys (uint64)."""
        import numpy as np

        self._sorted = np.union1d(self._sorted, keys)

    def keys(self) -> np.ndarray:
        """All keys, sorted."""
        import numpy as np

        if self._fresh:
            self.update(np.frombuffer(self._fresh, dtype=np.uint64))
            self._fresh = array("Q")
        return self._sorted

    def __len__(self) -> int:
        return len(self.keys())

    def shared_with(self, other: KeySet) -> int:
        """How many keys are in the other set too."""
        import numpy as np

        return int(np.isin(self.keys(), other.keys(), assume_unique=True).sum())


class NGrams:
    """Distinct-n over lines (Li et al. 2016): different n-grams divided by n-grams.

    N-grams do not cross lines. Because the figure falls with size, the counts at 1, 2, 5, 10, 20,
    50 ... thousand words are kept too, so that data sets can be compared at equal numbers of words.
    """

    def __init__(self) -> None:
        self.words = 0
        self.lines = 0
        self.line_keys = KeySet()
        self.marks: dict[int, dict[int, float]] = {}
        self._next_mark = 1000
        self._ids: dict[str, int] = {}
        self._frequency = array("Q", [0])
        self._pending: list[int] = []
        self._total = dict.fromkeys(ORDERS, 0)
        self._seen = {order: KeySet() for order in ORDERS}

    def add(self, line: str) -> list[str]:
        """Count a line; returns its words."""
        found = words_of(line)
        ids = self._ids
        for word in found:
            number = ids.setdefault(word, len(ids) + 1)
            self._pending.append(number)
            if number == len(self._frequency):
                self._frequency.append(0)
            self._frequency[number] += 1
        self._pending.append(0)  # no n-gram goes over the end of a line
        self.lines += 1
        self.words += len(found)
        self.line_keys.add(text_key(" ".join(found)))
        if self.words >= self._next_mark:
            self.marks[self._next_mark] = self.distinct()
            self._next_mark = _after(self._next_mark)
        elif len(self._pending) >= FLUSH:
            self._flush()
        return found

    @property
    def vocabulary(self) -> int:
        """How many different words there are."""
        return len(self._ids)

    @property
    def once(self) -> int:
        """How many words occur once only."""
        return sum(count == 1 for count in self._frequency)

    @property
    def repeats(self) -> int:
        """How many lines were there before, but for casing and punctuation."""
        return self.lines - len(self.line_keys)

    def distinct(self) -> dict[int, float]:
        """Distinct-1, -2 and -3 of the lines so far; 0 where there is no n-gram."""
        self._flush()
        return {n: len(self._seen[n]) / self._total[n] if self._total[n] else 0.0 for n in ORDERS}

    def different(self) -> dict[int, int]:
        """Numbers of different 1-, 2- and 3-grams so far."""
        self._flush()
        return {n: len(self._seen[n]) for n in ORDERS}

    def _flush(self) -> None:
        import numpy as np

        ids = np.array(self._pending, dtype=np.uint64)
        self._pending = []
        if not len(ids):
            return
        keys, whole = ids, ids > 0
        for order in ORDERS:
            if order > 1:
                keys = keys[:-1] * np.uint64(_MIX) + ids[order - 1 :]
                whole = whole[:-1] & (ids[order - 1 :] > 0)
            self._total[order] += int(whole.sum())
            self._seen[order].update(np.unique(keys[whole]))


def _after(mark: int) -> int:
    """1, 2, 5, 10, 20, 50 ... thousand."""
    return mark * 5 // 2 if str(mark)[0] == "2" else mark * 2


class NearDuplicates:
    """Finds texts that all but repeat an earlier one: MinHash LSH over word shingles.

    A candidate of the index counts when the Jaccard similarity estimated from the whole signatures
    reaches the threshold. A near duplicate is not kept to compare with.
    """

    def __init__(self, threshold: float = THRESHOLD) -> None:
        try:
            from datasketch import MinHash, MinHashLSH
        except ImportError:
            raise needs("datasketch") from None
        self.threshold = threshold
        self.seen = self.found = 0
        self._blank = MinHash(num_perm=PERMUTATIONS)
        self._index = MinHashLSH(threshold, num_perm=PERMUTATIONS, weights=MISSES_WEIGH)
        self._kept: list[Any] = []  # signatures: 128 numbers of 32 bits each

    def add(self, shingles: set[str]) -> bool:
        """Whether these shingles nearly repeat those of an earlier text."""
        import numpy as np

        self.seen += 1
        signature = self._blank.copy()
        signature.update_batch([shingle.encode("utf-8", "replace") for shingle in shingles])
        values = signature.hashvalues
        for key in self._index.query(signature):
            if np.count_nonzero(self._kept[key] == values) >= self.threshold * PERMUTATIONS:
                self.found += 1
                return True
        self._index.insert(len(self._kept), signature)
        self._kept.append(values)
        return False


def shingles_of(lines: Iterable[Sequence[str]], size: int) -> set[str]:
    """All runs of `size` words within a line; a shorter line is one shingle."""
    found = set()
    for words in lines:
        for start in range(max(1, len(words) - size + 1)):
            found.add(" ".join(words[start : start + size]))
    return found


class Reservoir(Generic[T]):
    """A uniform random sample of a stream of unknown length (Vitter's algorithm R)."""

    def __init__(self, size: int, seed: str) -> None:
        self.size = size
        self.kept: list[T] = []
        self._seen = 0
        self._rng = random.Random(seed)

    def add(self, value: T) -> None:
        """Offer one value."""
        self._seen += 1
        if len(self.kept) < self.size:
            self.kept.append(value)
        elif (place := self._rng.randrange(self._seen)) < self.size:
            self.kept[place] = value


def self_bleu(lines: Sequence[str]) -> float | None:
    """Mean BLEU-4 of each line against all others, 0 to 100 (Texygen, Zhu et al. 2018).

    What sacrebleu's `sentence_score` gives for each line with all others as its references
    (lowercased, effective order), without going through all pairs: of each n-gram it is enough to
    know the two highest counts. Lower is more varied. It grows with the number of lines: compare
    equal samples. None for fewer than two lines.
    """
    try:
        from sacrebleu.metrics import BLEU
        from sacrebleu.metrics.helpers import extract_all_word_ngrams
        from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    except ImportError:
        raise needs("sacrebleu") from None
    if len(lines) < 2:
        return None
    tokenize = Tokenizer13a()
    counted = [extract_all_word_ngrams(tokenize(line.lower().rstrip()), 1, 4) for line in lines]
    highest: dict[tuple[str, ...], tuple[int, int, int]] = {}  # count, whose, second count
    for owner, (grams, _) in enumerate(counted):
        for gram, count in grams.items():
            first, whose, second = highest.get(gram, (0, -1, 0))
            if count > first:
                highest[gram] = (count, owner, first)
            elif count > second:
                highest[gram] = (first, whose, count)
    lengths = Counter(length for _, length in counted)
    score = 0.0
    for owner, (grams, length) in enumerate(counted):
        correct, possible = [0] * 4, [0] * 4
        for gram, count in grams.items():
            first, whose, second = highest[gram]
            possible[len(gram) - 1] += count
            correct[len(gram) - 1] += min(count, second if whose == owner else first)
        closest = _closest(length, [n for n in lengths if n != length or lengths[n] > 1])
        score += BLEU.compute_bleu(
            correct, possible, length, closest, smooth_method="exp", effective_order=True
        ).score
    return score / len(lines)


def _closest(length: int, others: Iterable[int]) -> int:
    """The reference length that BLEU compares with: the nearest, of two the shorter."""
    return min(others, key=lambda other: (abs(other - length), other))
