"""The mechanism of the built-in corpus: vocabularies and sentence patterns in, records out.

Everything random comes from one `random.Random` through its `random()` method alone, whose sequence Python
guarantees across versions; `choice`, `shuffle` and `gauss` carry no such promise.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple, TypeVar

T = TypeVar("T")

SLOT = re.compile(r"\{(\w+)\}")
PLURAL_ENDING = re.compile(r"\[(\w+)\]")


@dataclass(frozen=True)
class Measure:
    """A unit with the distribution of a concept's values in it: log-normal, cut off and rounded.

    Parameters
    ----------
    unit
        Name of the unit, as `numcolbert.quantities` calls it.
    median
        Median value.
    spread
        Standard deviation of the base-10 logarithm of the value.
    low, high
        Smallest and largest value.
    digits
        Significant digits kept.
    decimals
        Decimal places kept at most.
    share
        Share of this unit among the measures of the concept.
    """

    unit: str
    median: float
    spread: float
    low: float
    high: float
    digits: int = 3
    decimals: int = 0
    share: float = 1.0


@dataclass(frozen=True)
class Noun:
    """A noun phrase that names a concept; its text may hold slots.

    Parameters
    ----------
    text
        The phrase without article: "dividend".
    article
        Indefinite article that the phrase takes before "of": "a", "an" or none.
    plural
        Whether its verb is plural.
    """

    text: str
    article: str = ""
    plural: bool = False


@dataclass(frozen=True)
class Concept:
    """What a quantity is the quantity of.

    Parameters
    ----------
    name
        Identifier of the concept, the same for all its noun phrases.
    nouns
        Noun phrases, drawn with equal probability; repeat one to weigh it.
    measures
        Units and value distributions.
    kind
        Group of concepts that a pattern may restrict itself to.
    hosts
        What may bear the concept (sector, disease, product category); empty for every host of the domain.
    """

    name: str
    nouns: tuple[Noun, ...]
    measures: tuple[Measure, ...]
    kind: str = ""
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pattern:
    """A sentence with slots, and the kinds of concept it fits (every kind if empty)."""

    text: str
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Domain:
    """One domain of the corpus.

    Parameters
    ----------
    name
        Name of the domain.
    hosts
        What bears concepts: sectors, diseases, product categories.
    concepts
        Concepts that are the main fact of a sentence.
    asides
        Concepts that only distract.
    patterns
        Sentence patterns.
    fillers
        Phrases for each slot; they may hold slots.
    """

    name: str
    hosts: tuple[str, ...]
    concepts: tuple[Concept, ...]
    asides: tuple[Concept, ...]
    patterns: tuple[Pattern, ...]
    fillers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Record(NamedTuple):
    """A sentence with its main fact."""

    text: str
    domain: str
    concept: str
    """Identifier of the concept."""
    noun: str
    """The noun phrase that names it in the sentence."""
    value: float
    unit: str
    start: int
    """Character span of the main quantity."""
    end: int
    pattern: int
    """Position of the sentence's pattern in the domain."""


# --------------------------------------------------------------------------------------------------------------
# Random draws


def pick(rng: random.Random, options: Sequence[T]) -> T:
    """Draw one of the options with equal probability."""
    return options[int(rng.random() * len(options))]


def integer(rng: random.Random, low: int, high: int) -> int:
    """Draw an integer from low to high, both included."""
    return low + int(rng.random() * (high - low + 1))


def normal(rng: random.Random) -> float:
    """Draw from the standard normal distribution (sum of twelve uniforms: additions only, equal on any platform)."""
    return sum(rng.random() for _ in range(12)) - 6.0


def draw_measure(rng: random.Random, measures: Sequence[Measure]) -> Measure:
    """Draw a measure by its share."""
    point = rng.random() * sum(measure.share for measure in measures)
    for measure in measures:
        point -= measure.share
        if point < 0:
            return measure
    return measures[-1]


def draw_value(rng: random.Random, measure: Measure) -> Decimal:
    """Draw a value of a measure, rounded to at most its significant digits (now and then to fewer)."""
    while True:
        value = measure.median * 10.0 ** (measure.spread * normal(rng))
        if not measure.low <= value <= measure.high:
            continue
        digits = measure.digits - (rng.random() < 0.25)
        # Twelve digits first: the last bits of a power may differ between C libraries.
        exact = Decimal(f"{value:.11e}")
        places = min(measure.decimals, digits - 1 - exact.adjusted())
        rounded = exact.quantize(Decimal(1).scaleb(-places))
        if Decimal(str(measure.low)) <= rounded <= Decimal(str(measure.high)) and rounded > 0:
            return rounded


# --------------------------------------------------------------------------------------------------------------
# Surface forms


def plain(value: Decimal, separator: str = ",") -> str:
    """Write a number out, with thousands separators, without trailing zeros."""
    text = f"{value:{separator}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


CURRENCIES: dict[str, dict[str, tuple[str, ...]]] = {
    "USD": {
        "plain": ("${n}", "${n}", "{n} dollars", "USD {n}", "US${n}"),
        "scaled": ("${n} {w}", "${n} {w}", "${n} {w}", "${n}{s}", "{n} {s} dollars", "{n} {w} dollars", "USD {n} {w}"),
    },
    "EUR": {
        "plain": ("€{n}", "{n} euros", "EUR {n}"),
        "scaled": ("€{n} {w}", "€{n} {w}", "€{n}{s}", "{n} {w} euros", "EUR {n} {w}"),
    },
    "GBP": {
        "plain": ("£{n}", "£{n}", "GBP {n}"),
        "scaled": ("£{n} {w}", "£{n} {w}", "£{n}{s}", "GBP {n} {w}"),
    },
}
"""Forms of an amount of money: {n} number, {w} scale word, {s} its abbreviation."""

SCALES = ((Decimal(10**9), "billion", "bn"), (Decimal(10**6), "million", "mn"))

UNITS: dict[str, tuple[str, ...]] = {
    "percent": ("{n}%", "{n}%", "{n} percent", "{n} per cent"),
    "employee": ("{n} employee[s]",),
    "worker": ("{n} worker[s]",),
    "barrel/day": ("{n} barrels per day", "{n} barrels per day", "{n} bpd"),
    "metric_ton": ("{n} tonne[s]", "{n} metric ton[s]"),
    "milligram": ("{n} mg", "{n} mg", "{n} milligram[s]"),
    "kilogram": ("{n} kg", "{n} kg", "{n} kilogram[s]"),
    "gram": ("{n} g", "{n} gram[s]"),
    "pound": ("{n} lb", "{n} pound[s]"),
    "millimeter_Hg": ("{n} mmHg", "{n} mm Hg"),
    "milligram/deciliter": ("{n} mg/dL", "{n} mg/dl"),
    "gram/deciliter": ("{n} g/dL", "{n} g/dl"),
    "year": ("{n} year[s]",),
    "month": ("{n} month[s]",),
    "week": ("{n} week[s]",),
    "day": ("{n} day[s]",),
    "hour": ("{n} hour[s]", "{n} hour[s]", "{n} h"),
    "minute": ("{n} minute[s]", "{n} min"),
    "patient": ("{n} patient[s]",),
    "participant": ("{n} participant[s]",),
    "gigabyte": ("{n} GB", "{n} GB", "{n} gigabyte[s]"),
    "terabyte": ("{n} TB", "{n} terabyte[s]"),
    "inch": ("{n} inch[es]", "{n} inches"),
    "meter": ("{n} m", "{n} meter[s]", "{n} metre[s]"),
    "kilometer": ("{n} km", "{n} kilometer[s]", "{n} kilometre[s]"),
    "mile": ("{n} mile[s]",),
    "kilometer/hour": ("{n} km/h", "{n} km/h", "{n} kilometers per hour"),
    "mile/hour": ("{n} mph", "{n} miles per hour"),
    "watt": ("{n} W", "{n} watt[s]"),
    "watt_hour": ("{n} Wh", "{n} watt-hour[s]"),
    "megabyte/second": ("{n} MB/s",),
    "megapixel": ("{n} megapixels",),
    "decibel": ("{n} dB", "{n} decibel[s]"),
    "lumen": ("{n} lumens",),
    "liter": ("{n} liter[s]", "{n} litre[s]", "{n} L"),
}
"""Forms of a quantity by unit: {n} number, [s] an ending left out after 1."""


def render_money(rng: random.Random, value: Decimal, currency: str) -> str:
    """Write an amount of money in one of its forms."""
    forms = CURRENCIES[currency]
    cents = value * 100
    if value < 1 and currency == "USD" and cents == int(cents) and rng.random() < 0.4:
        return f"{plain(cents)} cents" if cents != 1 else "1 cent"
    if value < SCALES[-1][0] or (value < 10 * SCALES[-1][0] and rng.random() < 0.25):
        # Prices have no decimals or two of them.
        number = plain(value) if value == int(value) else f"{value:,.2f}"
        return pick(rng, forms["plain"]).format(n=number)
    usual = SCALES[0] if value >= SCALES[0][0] else SCALES[1]
    scale, word, short = SCALES[1] if rng.random() < 0.15 and value < 20 * SCALES[0][0] else usual
    return pick(rng, forms["scaled"]).format(n=plain(value / scale), w=word, s=short)


def render_quantity(rng: random.Random, value: Decimal, unit: str) -> str:
    """Write a quantity in one of the forms of its unit."""
    if unit in CURRENCIES:
        return render_money(rng, value, unit)
    number = plain(value)
    if value >= SCALES[1][0] and rng.random() < 0.7:
        number = f"{plain(value / SCALES[1][0])} million"
    form = pick(rng, UNITS[unit]).format(n=number)
    return PLURAL_ENDING.sub("" if value == 1 else r"\1", form)


NUMBERS: dict[str, Callable[[random.Random], str]] = {
    "digit": lambda rng: str(integer(rng, 2, 9)),
    "few": lambda rng: str(integer(rng, 2, 9)),
    "count": lambda rng: str(integer(rng, 11, 96)),
    "hundreds": lambda rng: str(integer(rng, 101, 980)),
    "thousands": lambda rng: f"{integer(rng, 1010, 9890):,}",
    "percent": lambda rng: f"{integer(rng, 11, 389) / 10:g}{pick(rng, ('%', '%', ' percent'))}",
    "section": lambda rng: f"{integer(rng, 2, 9)}.{integer(rng, 1, 9)}",
    "dayofmonth": lambda rng: str(integer(rng, 1, 28)),
    "weeks": lambda rng: str(integer(rng, 2, 13) * 4),
    "letter": lambda rng: pick(rng, "ABCDEGHKLMPRSTVXZ"),
    "age": lambda rng: str(integer(rng, 31, 69)),
}
"""Number slots: what distracts from the main quantity."""


# --------------------------------------------------------------------------------------------------------------
# Sentences


def bears(concept: Concept, host: str) -> bool:
    """Tell whether a host may bear a concept."""
    return not concept.hosts or host in concept.hosts


def measures_in(concept: Concept, unit: str) -> tuple[Measure, ...]:
    """Return the measures of a concept that use a unit."""
    return tuple(measure for measure in concept.measures if measure.unit == unit)


class Sentence:
    """One sentence in the making: fills the slots of a pattern, each slot once.

    A slot whose name ends in a digit draws from the fillers of the name without it, and never repeats their draw:
    `{company}` and `{company2}` are two companies.
    """

    def __init__(self, rng: random.Random, domain: Domain, concept: Concept) -> None:
        self.rng = rng
        self.domain = domain
        host = pick(rng, concept.hosts or domain.hosts)
        noun = pick(rng, concept.nouns)
        measure = draw_measure(rng, concept.measures)
        self.unit = measure.unit
        self.value = draw_value(rng, measure)
        year = integer(rng, 2006, 2025)
        self.filled = {
            "host": host,
            "ahost": f"{'an' if host[0] in 'aeiou' else 'a'} {host}",
            "q": render_quantity(rng, self.value, self.unit),
            "year": str(year),
            "earlier": str(year - integer(rng, 1, 9)),
            "lastyear": str(year - 1),
            "later": str(year + integer(rng, 1, 6)),
        }
        self._name("", noun)
        self._distract(concept, host)

    def _name(self, prefix: str, noun: Noun) -> None:
        """Fill the slots that name a concept and agree with it."""
        text = self.fill(noun.text)
        self.filled[f"{prefix}c"] = text
        self.filled[f"{prefix}ac"] = f"{noun.article} {text}".strip()
        self.filled[f"{prefix}was"] = "were" if noun.plural else "was"
        self.filled[f"{prefix}has"] = "have" if noun.plural else "has"
        self.filled[f"{prefix}is"] = "are" if noun.plural else "is"
        self.filled[f"{prefix}s"] = "" if noun.plural else "s"

    def _distract(self, concept: Concept, host: str) -> None:
        """Choose the second quantity: another concept of the same host, of the same unit wherever there is one."""
        others = [
            other
            for other in (*self.domain.concepts, *self.domain.asides)
            if other.name != concept.name and bears(other, host)
        ]
        others = [other for other in others if measures_in(other, self.unit)] or others
        other = pick(self.rng, others)
        measure = draw_measure(self.rng, measures_in(other, self.unit) or other.measures)
        self._name("o", pick(self.rng, other.nouns))
        self.filled["oq"] = render_quantity(self.rng, draw_value(self.rng, measure), measure.unit)

    def fill(self, text: str) -> str:
        """Fill every slot of a text."""
        return SLOT.sub(lambda match: self._slot(match.group(1)), text)

    def _slot(self, name: str) -> str:
        if name not in self.filled:
            base = name.rstrip("0123456789")
            # By first word, so that "Larkmont" and "Larkmont Group" do not meet in one sentence.
            taken = [text.split()[0] for key, text in self.filled.items() if key.rstrip("0123456789") == base]
            text = self._draw(base, anew=bool(taken))
            while text.split()[0] in taken:
                text = self._draw(base, anew=True)
            self.filled[name] = text
        return self.filled[name]

    def _draw(self, name: str, anew: bool) -> str:
        """Draw a filler; `anew` draws the parts of a name again as well, else they stay those of the sentence."""
        if name in NUMBERS:
            return NUMBERS[name](self.rng)
        options = self.domain.fillers[name]
        if anew:
            for part in SLOT.findall(" ".join(options)):
                self.filled.pop(part, None)
        return self.fill(pick(self.rng, options))

    def write(self, pattern: Pattern) -> tuple[str, int, int]:
        """Write the sentence; return it with the character span of the main quantity."""
        before, after = (self.fill(part) for part in pattern.text.split("{q}"))
        before, after = before.replace("s's ", "s' "), after.replace("s's ", "s' ")
        start = len(before)
        text = f"{before}{self.filled['q']}{after}"
        return text[0].upper() + text[1:], start, start + len(self.filled["q"])


def generate_domain(domain: Domain, rng: random.Random, sentences: int) -> Iterator[Record]:
    """Write the sentences of one domain, concepts in turn, patterns of a concept evenly, no text twice.

    Parameters
    ----------
    domain
        Vocabularies and patterns.
    rng
        Source of randomness.
    sentences
        Number of sentences.

    Yields
    ------
    Record
        A sentence with its main fact.
    """
    fitting = {
        concept.name: [
            number
            for number, pattern in enumerate(domain.patterns)
            if not pattern.kinds or concept.kind in pattern.kinds
        ]
        for concept in domain.concepts
    }
    used = [0] * len(domain.patterns)
    seen: set[str] = set()
    while len(seen) < sentences:
        concept = domain.concepts[len(seen) % len(domain.concepts)]
        sentence = Sentence(rng, domain, concept)
        # The least used of ten: evens the patterns out, and keeps their order random.
        candidates = [pick(rng, fitting[concept.name]) for _ in range(10)]
        number = min(candidates, key=used.__getitem__)
        text, start, end = sentence.write(domain.patterns[number])
        if text in seen:
            continue
        seen.add(text)
        used[number] += 1
        yield Record(
            text, domain.name, concept.name, sentence.filled["c"], float(sentence.value), sentence.unit,
            start, end, number,
        )  # fmt: skip
