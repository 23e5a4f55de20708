"""Claims of a study: what is claimed, at which level of error, under which assumption."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from raysel.core.printing import by_number
from raysel.results.facts import Facts
from raysel.results.feature_claims import FOLDER as CLAIMS
from raysel.results.permutation import FEATURES, LEVEL
from raysel.results.stability import FOLDER as STABILITY


@dataclass(frozen=True)
class Claim:
    """What a command claims."""

    #: Command that tests it.
    command: str
    #: What is claimed, in few words.
    what: str
    #: Level of error.
    level: str
    #: What must hold.
    assumption: str
    #: Result in a sentence.
    sentence: str
    #: Names of the claimed features, the most certain first; None for a claim about the score.
    features: Sequence[str] | None = None
    #: File in the study's directory that has all features.
    table: str = ""


def find_claims(facts: Facts) -> list[Claim]:
    """Return what the commands that were run on a study claim, the strongest claims first."""
    return [*chain.from_iterable(source(facts) for source in SOURCES)]


def claims_of_features(facts: Facts) -> list[Claim]:
    """Return the claims about single features."""
    return [claim for claim in find_claims(facts) if claim.features is not None]


def _beside_all_others(facts: Facts) -> Iterator[Claim]:
    """Claim features, groups or regions of them that tell the labels beside all others."""
    tested = facts.claims
    if tested is None:
        return
    yield Claim(
        command=f"claims --method {tested.method}",
        what=tested.number(),
        level=f"{tested.rate_name} {tested.level:g}",
        assumption=tested.assumption,
        sentence=tested.short_sentence(),
        features=tested.claimed_labels(),
        table=f"{CLAIMS}/claims.csv",
    )


def _by_permuted_labels(facts: Facts) -> Iterator[Claim]:
    """Claim single features by a filter that rates each alone, and the score by any method."""
    test = facts.permutation_test
    if test is None:
        return
    assumption = f"{test.exchanged} are exchangeable"
    if not test.retune:
        assumption += ", and choosing the configuration anew changes little"
    if test.claims_features:
        names = [test.feature_names[i] for i in test.claimed_features()]
        yield Claim(
            command="permute",
            what=_told(len(names)),
            level=f"family-wise error {LEVEL}",
            assumption=assumption,
            sentence=test.claim,
            features=names,
            table=FEATURES,
        )
    if test.p_value <= LEVEL:
        yield Claim(
            command="permute",
            what="the score is above that of labels without meaning",
            level=f"p = {test.p_value:.3g}",
            assumption=assumption,
            sentence=test.sentences()[0],
        )


def _by_halves(facts: Facts) -> Iterator[Claim]:
    """Claim the features that most halves of the samples select."""
    halves = facts.stability_selection
    if halves is None:
        return
    names = [facts.study.feature_names[i] for i in halves.order() if halves.selected[i]]
    yield Claim(
        command="stability",
        what=_told(len(names)),
        level=f"expected number of false ones at most {halves.bound:.2g}",
        assumption=(
            "features without an effect are exchangeable, and selected no more often than by a"
            f" random choice; {halves.unit} are independent"
        ),
        sentence=halves.short_sentence(),
        features=names,
        table=f"{STABILITY}/selection.csv",
    )


def _told(n: int) -> str:
    """Say how many features are claimed to tell the labels, by themselves or through others."""
    if not n:
        return "no single feature is claimed"
    return by_number(n, "1 feature tells the labels", f"{n} features tell the labels")


#: Where claims come from, the strongest first.
SOURCES: tuple[Callable[[Facts], Iterator[Claim]], ...] = (
    _beside_all_others,
    _by_permuted_labels,
    _by_halves,
)
