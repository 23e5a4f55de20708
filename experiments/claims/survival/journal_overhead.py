"""Cost of the journal and of a resume's bookkeeping, beside the fits of 0.2 s that they record.

python experiments/claims/survival/journal_overhead.py
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from raysel.evaluation.nested_search import empty_record
from raysel.evaluation.records import FoldTrace, InnerTrace
from raysel.execution.trial_plan import trial_plan
from raysel.run.api import prepare_study
from raysel.run.recording import study_record
from raysel.study.stored import StoredStudy
from raysel.tracking.directory import StudyDirectory
from raysel.tracking.journal import Journal

FIT_SECONDS, ITERATIONS, TRIALS, REPEATS = 0.2, 30, 200, 5


def main() -> None:
    """Print both shares, medians of several repeats."""
    space = {"solver.space.alpha": {"loguniform": [0.001, 1]}}
    changes = {"search.num_samples": TRIALS, "search.method": "random", **space}
    study = prepare_study("digits-smr", changes)
    fits = TRIALS * study.n_inner
    written, read = [], []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory(dir=".") as name:
            directory = StudyDirectory(Path(name))
            with Journal(directory.journal) as journal:
                journal.append(
                    study_record(study, id_="a", uri="sqlite:///a.db", started=time.time())
                )
                records = []
                for configuration in study.configurations:
                    record = empty_record(configuration)
                    curve = [1 / (i + 3) for i in range(ITERATIONS)]
                    for fold in study.plan.folds:
                        inner = [InnerTrace(curve, [[x] * 5 for x in curve]) for _ in fold.inner]
                        record.folds[fold.name] = FoldTrace(inner=inner)
                    records.append(record)
                begun = time.perf_counter()
                for record in records:
                    journal.append(record)
                written.append(time.perf_counter() - begun)
            begun = time.perf_counter()
            kept = StoredStudy.read(directory)
            kept.check(
                study, study_record(study, id_="a", uri="sqlite:///a.db", started=time.time())
            )
            assert trial_plan(study, kept.trials).n_left == 0
            read.append(time.perf_counter() - begun)
    for what, seconds in (("journal", written), ("resume's reading", read)):
        middle = statistics.median(seconds)
        print(
            f"{what}: {middle / TRIALS * 1000:.2f} ms a trial of {study.n_inner} fits x"
            f" {ITERATIONS} iterations, {middle / (fits * FIT_SECONDS):.3%} of {fits} fits of"
            f" {FIT_SECONDS} s"
        )


if __name__ == "__main__":
    main()
