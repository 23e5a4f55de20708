"""The page of all experiments, experiments/README.md: what survives of the three papers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from matplotlib import rc_context
from matplotlib.figure import Figure

from experiments.papers.selection import CONTROL
from experiments.protocol import CHANCE
from experiments.report import STYLE, Report, digits, draw_scores, markdown, panels, write_figure
from raysel.numerics.inference import RankComparison, compare_over_data_sets
from raysel.results.displays.critical_difference import RankDiagram

#: Papers by the start of their experiments' names.
PAPERS = {
    "smr": "SMR (Hou et al., TIP 2017)",
    "mtda": "MTDA (Zhang & Yeung, AAAI 2011)",
    "smml": "SMML (Wang et al., CVPR 2013)",
}
#: Experiments whose results are scores of methods, and the method of the paper.
SCORED = {
    "smr-accuracy": "SMR",
    "smr-scenes": "SMR",
    "mtda-errors": "MTDA",
    "smml-single": "SMML",
    "smml-labels": "SMML",
}
#: Verdicts over more than one claim.
PLURAL = {
    "holds": "hold",
    "holds on some sets": "hold on some sets",
    "does not hold": "do not hold",
}
INTRODUCTION = """# What survives of three papers

Three papers propose the methods behind raysel's solvers: SMR and MTDA select or combine pixels, SMML weighs several
descriptions of an image. Each claims to be better than its rivals. Every table and figure of theirs is made again here.

Each result has three figures. *Published* is the paper's. *Optimistic* is the test score of the configuration whose
mean test score is the best: the test samples have chosen it, so it is too high. *Honest* lets inner folds of the
training samples choose: it is what a user gets on new samples. A claim to be the best *holds* on a data set if the
method's honest score is above every rival's, and its difference to the *best other*, the rival with the best inner
score, has P < .05 after Holm's correction. Scores are accuracies, or macro F1 where samples have several labels: higher
is better; where a row says error, lower is better.

Rivals are the selectors, projections and kernels of the paper; the figures also show further methods and tuned forms,
some of which score higher. *Does not hold* says that the claim was not seen here, whether the method is worse or cannot
be told apart. Claims that compare no methods are judged by a rule that the page of the experiment gives. Below, p is a
number of training images, and P a P value."""
SCORES = """## Optimistic and honest scores

Honest score (filled) and optimistic score (hollow) of each method; the papers' own are orange diamonds. SMR and MTDA:
accuracy of the nearest neighbour; SMML: accuracy, or macro F1 where samples have several labels. p: training images a
person. Each panel has its own axis, which does not start at zero: compare positions within a panel only. In the first
panel the labels are permuted, so that nothing can be learnt: honest scores are chance there, optimistic ones above
it."""
COMPARED = """## The papers' methods and the best other

Accuracies, MTDA's too (1 - error, mean of the tasks), and macro F1 on MSRC-v2 and Scene; P is of the difference of the
two honest scores. No test score chooses the best other: its honest score may be below other rivals', of which the
highest is in the last column."""
STARRED = r"""\* An honest score can be above the optimistic one: inner folds choose a configuration for each training
set, while the optimistic score has one for all of them."""
DIFFERENCES = """## What differs from the papers

- A study chooses one configuration and one number of features by its inner scores; the papers draw the best
  configuration at each number. The tables have both.
- "As printed" iterates SMR above alpha_max too, where the zero solution is the optimum.
- "SMR as raysel sets it" compared four starts when these rows were computed. Since then it compares two, whose
  objective is within 1 % of theirs in 95 of 96 fits of ORL, UMIST and USPS
  ([smr-speed](benchmarks/smr-speed/README.md)). Those are raysel's own former starts: random ones end lower on other
  data ([smr-start](claims/smr-start/README.md)). "As printed" has one start.
- The smoothed F-test was run later than the others, on the same draws; its difference to SMR is not tested.
- "The best other" is chosen by inner scores, a data set at a time, not by test scores.
- MTDA's printed form stays in the range of the total scatter; the literal one, d' = 300, has a row of its own.
- Chance is the better of two guesses that read no feature: the most frequent class, and labels drawn by their shares.
- PIE has 68 persons in frontal pose, 68 x 42 pixels (the paper: five poses); mfeat stands for NUS-WIDE and Animal,
  Scene for TRECVID; MSRC-v1's SIFT has 200 words, not 1230; MSRC-v2 is without the label horse. Published figures of
  other data are marked in the first table: they are beside ours for orientation only."""
COMMANDS = """## Run it

For raysel on data of your own read the [guide](guide/README.md).

    RAYSEL_DATA=<folder> python -m experiments.run all          # about six hours on two quiet cores; resumes
    RAYSEL_DATA=<folder> python -m experiments.run smr-toy
    python -m experiments.run smr-accuracy --data mine=FILE.npz # any file with X (n, h, w) and y
    python -m experiments.run --list"""


def write_page(
    folder: Path, reports: Mapping[str, Report], results: Mapping[str, pd.DataFrame]
) -> None:
    """Write README.md, scores.svg and, from five independent sets on, ranks.svg."""
    parts = [
        INTRODUCTION,
        "## What survives",
        "\n".join(_sentences(reports)),
        markdown(_table(reports)),
    ]
    if any("*" in one.honest for one in reports.values()):
        parts.append(STARRED)
    if listed := [one.compared for one in reports.values() if one.compared is not None]:
        parts += [COMPARED, markdown(pd.concat(listed))]
    scored = {name: results[name] for name in SCORED if name in results}
    if scored:
        parts += [SCORES, "![scores](scores.svg)"]
        with rc_context(STYLE):
            write_figure(folder / "scores", _scores(scored))
    if (ranks := rank_smr(results)) is not None:
        figure, sentence = _ranks(*ranks)
        write_figure(folder / "ranks", figure)
        parts += [sentence, "![ranks](ranks.svg)"]
    parts += [DIFFERENCES, COMMANDS, *_standing(folder)]
    (folder / "README.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _sentences(reports: Mapping[str, Report]) -> list[str]:
    lines = []
    for start, paper in PAPERS.items():
        own = [one for name, one in reports.items() if name.startswith(start)]
        verdicts = Counter(one.verdict for one in own)
        counts = ", ".join(
            f"{n} {PLURAL.get(verdict, verdict) if n > 1 else verdict}"
            for verdict, n in sorted(verdicts.items())
        )
        conclusions = " ".join(one.conclusion for one in own if one.conclusion)
        if own:
            lines.append(f"- **{paper}**: of {len(own)} claims {counts}. {conclusions}".rstrip())
    return lines


def _table(reports: Mapping[str, Report]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"claim": one.claim, "verdict": f"**{one.verdict}**", "published": _published(one)}
            | {
                "optimistic": one.optimistic,
                "honest": one.honest,
                "details": f"[{name}](papers/{name}/README.md)",
            }
            for name, one in reports.items()
        ]
    )  # fmt: skip


def _published(report: Report) -> str:
    """Published figure, marked where it is of other data."""
    return (
        f"{report.published} (*other data*: {report.other_data})"
        if report.other_data
        else report.published
    )


def chosen(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Rows that a user gets, a table a data set."""
    return dict(iter(results[results["at"] == "chosen"].groupby("data", sort=False)))


def _scores(scored: Mapping[str, pd.DataFrame]) -> Figure:
    """A panel a data set, with one line a method."""
    shown = [
        (SCORED[name], data, rows)
        for name, table in scored.items()
        for data, rows in chosen(table).items()
    ]
    # Rows as high as their methods need.
    longest = [
        max(len(rows) for _, _, rows in shown[i : i + 2]) + 4 for i in range(0, len(shown), 2)
    ]
    figure, axes = panels(len(shown), 2, 0.135 * sum(longest) / len(longest), height_ratios=longest)
    for ax, (own, data, rows) in zip(axes, shown, strict=True):
        draw_scores(ax, rows, own)
        chance = rows.set_index("method")["honest"].get(CHANCE)
        named = f"MTDA, {data}" if data.startswith("p = ") else data
        ax.set_title(named if chance is None else f"{named} (chance {digits(chance)})", loc="right")
    axes[0].legend(frameon=False, fontsize=7)
    return figure


def rank_smr(results: Mapping[str, pd.DataFrame]) -> tuple[pd.DataFrame, RankComparison] | None:
    """Rank the methods that SMR's independent sets have in common; None before both experiments are
    there.

    The first value has their honest scores, a row a method, a column a set.
    """
    if not {"smr-accuracy", "smr-scenes"} <= results.keys():
        return None
    sets = chosen(results["smr-accuracy"]) | {
        "LSP": chosen(results["smr-scenes"])["LSP"]
    }  # OT is a part of LSP
    del sets[CONTROL]
    table = (
        pd.DataFrame({data: rows.set_index("method")["honest"] for data, rows in sets.items()})
        .dropna()
        .drop(CHANCE)
    )
    return table, compare_over_data_sets(table.T.to_numpy())


def _ranks(scores: pd.DataFrame, ranking: RankComparison) -> tuple[Figure, str]:
    sentence = (
        f"Mean ranks of {len(scores)} methods over N = {scores.shape[1]} independent sets"
        f" ({', '.join(scores)}; OT is a part of LSP, whose columns are as stored). On each set the"
        " method with the highest honest score has rank 1: further left is better. Friedman's test"
        f" has P = {ranking.p_value:.2g}; bars join methods that Nemenyi's test at .05 does not"
        " tell apart."
    )
    short = [
        label.replace("as raysel sets it", "by raysel") for label in scores.index
    ]  # the diagram cuts long ones
    diagram = RankDiagram(
        "", short, ranking.mean_ranks, ranking.critical_difference, ranking.groups
    )
    figure = Figure(figsize=diagram.size)
    diagram.draw(figure.add_axes((0, 0, 1, 1)))
    return figure, sentence


def _standing(folder: Path) -> list[str]:
    """List what is measured of raysel itself: a line each, the first heading of its README."""
    parts = []
    for kind, title in (
        ("claims", "What raysel says of itself"),
        ("benchmarks", "Speed and memory"),
    ):
        lines = [
            f"- [{readme.parent.name}]({kind}/{readme.parent.name}/README.md): {_heading(readme)}"
            for readme in sorted((folder / kind).glob("*/README.md"))
        ]
        if lines:
            parts += [f"## {title}", "\n".join(lines)]
    return parts


def _heading(readme: Path) -> str:
    return readme.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
