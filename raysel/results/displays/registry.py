"""Displays of a study, which its report, its exported pictures and its plots show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from raysel.core.errors import StudyError
from raysel.evaluation.feature_ranking import FeatureRanking
from raysel.results.displays.agreement import RankTable, StabilityCurve
from raysel.results.displays.claimed_regions import ClaimedRegions
from raysel.results.displays.confusion import Confusion, LabelErrors
from raysel.results.displays.convergence import ObjectiveCurves
from raysel.results.displays.curves import Calibration, PrecisionRecallCurves, RocCurves
from raysel.results.displays.data import MeanImages, ModalityRanges
from raysel.results.displays.display import Display, StudyDisplay, write_figure
from raysel.results.displays.predictions import Predictions, Residuals
from raysel.results.displays.preview_data import DataPreview
from raysel.results.displays.probability import ProbabilityMap
from raysel.results.displays.profile import Profile
from raysel.results.displays.ranking import RankingFigure
from raysel.results.displays.scores import ScoreCurve, ScoreRows
from raysel.results.displays.search import SearchSurface
from raysel.results.facts import Facts

#: In the order of the exported pictures and of the figures within a section of the report.
DISPLAYS: tuple[type[StudyDisplay], ...] = (
    RankingFigure,
    ScoreCurve,
    ScoreRows,
    StabilityCurve,
    ClaimedRegions,
    ProbabilityMap,
    SearchSurface,
    Confusion,
    LabelErrors,
    RocCurves,
    PrecisionRecallCurves,
    Calibration,
    Predictions,
    Residuals,
    Profile,
    ObjectiveCurves,
    RankTable,
    MeanImages,
    ModalityRanges,
    DataPreview,
)


def find_displays(facts: Facts, section: str) -> Iterator[Display]:
    """Yield the figures that a section of the report shows, a divided one panel by panel."""
    for kind in DISPLAYS:
        if kind.section != section:
            continue
        display = kind.from_facts(facts)
        if display is None or not display.in_report:
            continue
        for panel in display.panels:
            if panel.section == section and panel.in_report:
                yield panel.for_report()


def find_display(facts: Facts, key: str, ranking: FeatureRanking | None = None) -> Display:
    """Return one figure of a study by its key."""
    kinds = [kind for kind in DISPLAYS if kind.key == key]
    for kind in kinds:
        if display := kind.from_facts(facts, ranking):
            return display
    raise StudyError(f"the study {facts.name} {kinds[0].lacks}")


def write_displays(
    facts: Facts,
    folder: Path,
    ranking: FeatureRanking | None,
    kinds: Sequence[str],
    *,
    only_ranking: bool,
) -> list[Path]:
    """Write the exported figures of a study, or that of a ranking only, as files of each kind."""
    shown_kinds = [display for display in DISPLAYS if display.exported]
    if only_ranking:
        shown_kinds = [RankingFigure]
    written: list[Path] = []
    for display in shown_kinds:
        if shown := display.from_facts(facts, ranking):
            figure = shown.headed_figure()
            written += [write_figure(figure, folder / f"{display.key}.{kind}") for kind in kinds]
    return written
