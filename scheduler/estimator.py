"""How fast speech is made, learned from what was made: one curve a device, and how long texts turn out to be.

The curve says how many seconds of audio a device makes in a second with so many slots busy. It is concave: the second
slot adds less than the first. What was never seen is the backend's prior, scaled as the nearest counts that were.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from core.speech import Priors, Utterance

CHARS_PER_SECOND = 14.0
"""Characters of text to a second of speech at speed 1, before any was heard."""

WIDE_CHARS_PER_SECOND: Mapping[str, float] = {"zh": 4.5, "ja": 6.0}
"""The same for languages whose characters are syllables and words."""

MEMORY = 0.9
"""What is kept of the past when one more utterance is learned: some twenty of them count."""


def estimated_s(utterance: Utterance) -> float:
    """Seconds of speech at speed 1 that an utterance will make, as long as nothing was learned."""
    return len(utterance.text) / WIDE_CHARS_PER_SECOND.get(utterance.language, CHARS_PER_SECOND)


def words_of(utterance: Utterance) -> int:
    """Words of an utterance; where the language writes none, characters."""
    return len(utterance.text if utterance.language in WIDE_CHARS_PER_SECOND else utterance.text.split())


@dataclass(frozen=True, slots=True)
class Curve:
    """What an `Estimator` has learned, to be kept: pairs of sums whose quotients are its figures, each above 0.

    speeds: by count of busy slots. lengths: by language. words: None as long as none was spoken.
    """

    speeds: Mapping[int, tuple[float, float]]
    lengths: Mapping[str, tuple[float, float]]
    words: tuple[float, float] | None = None


@dataclass(slots=True)
class _Ratio:
    """A quotient of two sums in which the past fades, so that long utterances count for more than short ones."""

    above: float = 0.0
    below: float = 0.0

    def learn(self, above: float, below: float) -> None:
        self.above = self.above * MEMORY + above
        self.below = self.below * MEMORY + below

    @property
    def value(self) -> float:
        return self.above / self.below

    @property
    def sums(self) -> tuple[float, float]:
        return self.above, self.below


class Estimator:
    """What is known of one backend on one device."""

    def __init__(self, priors: Priors, learned: Curve | None = None) -> None:
        """priors: the backend's own figures, for what was not seen yet. learned: in an earlier life."""
        self._priors = priors
        learned = learned or Curve({}, {})
        self._speeds = {count: _Ratio(*sums) for count, sums in learned.speeds.items()}
        self._lengths = {language: _Ratio(*sums) for language, sums in learned.lengths.items()}
        self._words = _Ratio(*(learned.words or ()))

    @property
    def learned(self) -> Curve:
        """All that was learned so far."""
        return Curve(
            {count: ratio.sums for count, ratio in self._speeds.items()},
            {language: ratio.sums for language, ratio in self._lengths.items()},
            self._words.sums if self._words.below else None,
        )

    def rate(self, busy: int) -> float:
        """Seconds of audio that the device makes in a second with `busy` slots busy, at least 1 of them."""
        return self._prior(busy) * self._scale(busy)

    def audio_s(self, utterance: Utterance, speed: float = 1.0) -> float:
        """Seconds of speech that an utterance will make."""
        learned = self._lengths.get(utterance.language)
        return estimated_s(utterance) * (learned.value if learned else 1.0) / speed

    def learn(self, utterance: Utterance, speed: float, *, audio_s: float, wall_s: float, busy: float) -> None:
        """An utterance was made. wall_s: in its slot. busy: slots that were busy meanwhile, on average."""
        if audio_s <= 0 or wall_s <= 0:  # nothing was said: it tells nothing of the speed
            return
        count = max(1, round(busy))
        self._speeds.setdefault(count, _Ratio()).learn(audio_s * max(busy, 1.0) / self._prior(count), wall_s)
        self._lengths.setdefault(utterance.language, _Ratio()).learn(audio_s * speed, estimated_s(utterance))
        self._words.learn(wall_s, words_of(utterance))

    @property
    def word_s(self) -> float:
        """Seconds of a slot that a word takes; 0 as long as none was spoken."""
        return self._words.value if self._words.below else 0.0

    def _prior(self, busy: int) -> float:
        rates = self._priors.rates
        return rates[min(max(busy, 1), len(rates)) - 1]

    def _scale(self, busy: int) -> float:
        """How far the prior is off at this count: as seen there, else between the nearest that were seen."""
        seen = sorted(self._speeds)
        if not seen:
            return 1.0
        place = bisect_left(seen, busy)
        low, high = seen[max(0, place - 1)], seen[min(place, len(seen) - 1)]
        low = high if place == 0 else low
        below, above = self._speeds[low].value, self._speeds[high].value
        return below if high <= low else below + (above - below) * (busy - low) / (high - low)


class BusyMeter:
    """How many slots of a device are busy, and how many were between two moments on average."""

    def __init__(self) -> None:
        self.busy = 0
        self._area = 0.0
        self._since = 0.0

    def add(self, slots: int, now: float) -> None:
        """So many slots more are busy from now on; fewer where negative."""
        self._area = self.area(now)
        self._since = now
        self.busy += slots

    def area(self, now: float) -> float:
        """Slot seconds since the start: the difference of two of them, by the time between, is the average."""
        return self._area + self.busy * (now - self._since)
