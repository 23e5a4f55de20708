"""Tables of a comparison as pandas data frames: one row a member, one row a score, one row a pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from raysel.comparison.pairs import Pair, pairs_with_reference
from raysel.comparison.rows import member_rows
from raysel.comparison.stored import StoredComparison

if TYPE_CHECKING:
    import pandas as pd


def comparison_table(comparison: StoredComparison) -> pd.DataFrame:
    """Return the figures of a comparison as a table with one row a member.

    Columns ``member``, ``solver``, ``test_<metric>`` and ``sd`` (over the outer folds), ``test_<metric>/<task>`` if
    there are several tasks, ``<metric>`` and ``<metric>_sd`` for each further metric, ``least_features`` and
    ``most_features`` (smallest and largest number of features that is chosen on an outer fold, which the scores are of;
    missing where they are means over several numbers, or of no number), ``top`` (number of features that the next three
    refer to), ``redundancy``, ``stability``, ``stability_of_noise`` (with permuted labels), ``configurations`` (largest
    number that was tried for an outer fold), ``cpu_seconds`` (median of a winner's fit), ``difference`` to the
    reference, ``lower`` and ``upper`` (its 95 % interval), ``p_plain`` and ``p_corrected`` (after Holm's correction),
    ``won``, ``tied``, ``lost`` and ``note`` (limitations, or why there is no result). Values that there are not are
    missing.
    """
    import pandas as pd  # noqa: PLC0415 - takes half a second to import

    rows = member_rows(comparison)
    pairs = pairs_with_reference(rows, comparison.reference, comparison.folds, comparison.metric)
    metrics = list(dict.fromkeys(name for row in rows.values() for name in row.report))
    listed = []
    for member in comparison.members:
        shown: dict[str, Any] = {"member": member.label, "solver": member.solver}
        row, pair = rows.get(member.label), pairs.get(member.label)
        if row is not None:
            shown |= {f"test_{comparison.metric}": row.mean, "sd": row.sd}
            shown |= {f"test_{comparison.metric}/{task}": float(own.mean()) for task, own in row.by_task.items()}
            for name, values in row.report.items():
                known = values[np.isfinite(values)]
                shown[name] = float(known.mean()) if len(known) else None
                shown[f"{name}_sd"] = float(known.std(ddof=1)) if len(known) > 1 else None
            shown |= {"least_features": min(row.chosen), "most_features": max(row.chosen)} if row.chosen else {}
            shown |= {"top": row.top, "redundancy": row.redundancy}
            shown["stability"] = None if row.stability is None else row.stability.value
            shown["stability_of_noise"] = None if row.noise is None else row.noise.mean
            shown |= {"configurations": row.n_tried[1], "cpu_seconds": row.cpu_seconds}
        if pair is not None:
            shown |= {"difference": pair.compared.mean, "won": pair.compared.won}
            shown |= {"tied": pair.compared.tied, "lost": pair.compared.lost}
            shown |= {"p_plain": pair.p_plain, "p_corrected": pair.p_corrected}
            if pair.test is not None:
                shown |= {"lower": pair.test.lower, "upper": pair.test.upper}
        notes = [note for own in row.notes.values() for note in own] if row else [member.failure]
        listed.append(shown | {"note": "; ".join(notes)})
    reported = [column for name in metrics for column in (name, f"{name}_sd")]
    tasks = dict.fromkeys(task for row in rows.values() for task in row.by_task)
    by_task = [f"test_{comparison.metric}/{task}" for task in tasks]
    columns = ["member", "solver", f"test_{comparison.metric or 'score'}", "sd", *by_task, *reported]
    columns += ["least_features", "most_features", "top", "redundancy", "stability", "stability_of_noise"]
    columns += ["configurations", "cpu_seconds", "difference", "lower", "upper", "p_plain", "p_corrected"]
    columns += ["won", "tied", "lost", "note"]
    whole = dict.fromkeys(("least_features", "most_features", "top", "configurations", "won", "tied", "lost"), "Int64")
    real = [c for c in columns if c not in (*whole, "member", "solver", "note")]
    return pd.DataFrame(listed, columns=columns).astype(whole | dict.fromkeys(real, "float64"))


def score_table(comparison: StoredComparison) -> pd.DataFrame:
    """Return every test score of the winners as a table with one row a score.

    Columns ``member``, ``outer_fold``, ``metric`` (that of the study, the further ones, and ``redundancy``),
    ``n_features`` and ``task`` (missing where there is none), and ``score``.
    """
    import pandas as pd  # noqa: PLC0415

    listed = []
    for label, study in comparison.studies.items():
        evaluation, labels = study.config["evaluation"], list(study.stored.study.labels)
        of: list[tuple[int | None, str | None]] = [(n, None) for n in evaluation["n_features"]]
        if evaluation["classifier"] == "native":
            of = [(None, task) for task in labels] or [(None, None)]
        sizes: list[tuple[int | None, str | None]] = [(n, None) for n in evaluation["n_features"]]
        sizes = sizes or [(study.default_top, None)]
        for refit in study.outer:
            scores: dict[str, tuple[Sequence[tuple[int | None, str | None]], Sequence[float | None]]]
            scores = {study.metric: (of, refit.test_scores)}
            scores |= {name: (of, values) for name, values in refit.report.items()}
            scores |= {"redundancy": (sizes, refit.redundancy)} if refit.redundancy else {}
            listed += [
                (label, refit.fold, metric, n, task, value)
                for metric, (places, values) in scores.items()
                for (n, task), value in zip(places, values, strict=True)
            ]
    columns = ["member", "outer_fold", "metric", "n_features", "task", "score"]
    return pd.DataFrame(listed, columns=columns).astype({"n_features": "Int64", "score": "float64"})


def pair_table(comparison: StoredComparison) -> pd.DataFrame:
    """Return the paired tests against the reference as a table with one row a pair.

    Columns ``member``, ``reference``, ``n_runs``, ``mean_difference`` and ``sd_difference`` (of the member's score
    minus the reference's), ``won``, ``tied``, ``lost``, ``test_train_ratio``, ``main_test``, then for ``plain`` and
    ``corrected`` each ``<test>_t``, ``<test>_p``, ``<test>_p_holm``, ``<test>_lower`` and ``<test>_upper`` (of the 95 %
    interval), and ``reason`` why there is no test.
    """
    import pandas as pd  # noqa: PLC0415

    pairs = pairs_with_reference(member_rows(comparison), comparison.reference, comparison.folds, comparison.metric)
    listed = [_pair_row(pair, comparison.reference) for pair in pairs.values()]
    columns = ["member", "reference", "n_runs", "mean_difference", "sd_difference", "won", "tied", "lost"]
    columns += ["test_train_ratio", "main_test"]
    columns += [f"{test}_{what}" for test in ("plain", "corrected") for what in ("t", "p", "p_holm", "lower", "upper")]
    return pd.DataFrame(listed, columns=[*columns, "reason"])


def _pair_row(pair: Pair, reference: str) -> dict[str, Any]:
    compared = pair.compared
    row: dict[str, Any] = {
        "member": pair.label,
        "reference": reference,
        "n_runs": len(compared.differences),
        "mean_difference": compared.mean,
        "sd_difference": compared.sd,
        "won": compared.won,
        "tied": compared.tied,
        "lost": compared.lost,
        "test_train_ratio": compared.ratio,
        "main_test": pair.main,
        "reason": compared.reason,
    }
    for name, test, p_holm in (
        ("plain", compared.plain, pair.p_plain),
        ("corrected", compared.corrected, pair.p_corrected),
    ):
        if test is not None:
            row |= {f"{name}_t": test.statistic, f"{name}_p": test.p_value, f"{name}_p_holm": p_holm}
            row |= {f"{name}_lower": test.lower, f"{name}_upper": test.upper}
    return row
