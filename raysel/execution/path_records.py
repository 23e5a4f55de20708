"""Trial records of the configurations, assembled from the paths of all inner training sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from raysel.cv.records import FoldTrace, PathRecord, TrialRecord
from raysel.search.nested import empty_record
from raysel.study.definition import Study


def trial_records(study: Study, paths: Sequence[PathRecord]) -> list[TrialRecord]:
    """Assemble a trial record of each configuration from the paths of all inner training sets."""
    found = {(path.fold, path.inner): path for path in paths}
    records = []
    for configuration in study.configurations:
        record = empty_record(configuration)
        record.started, record.ended = min(p.started for p in paths), max(p.ended for p in paths)
        for fold in study.plan.folds:
            own = [found[fold.name, i] for i in range(len(fold.inner))]
            failed = next((path for path in own if configuration.id not in path.fits), None)
            if failed is not None:
                record.folds[fold.name] = FoldTrace(error=f"inner fold {failed.inner}: {failed.error}")
                continue
            fits = [replace(path.fits[configuration.id]) for path in own]
            trace = record.folds[fold.name] = FoldTrace(all(fit.source == "zero" for fit in fits), fits)
            if not study.evaluation.every_iteration:
                trace.choose_c(study.evaluation.C)
        if record.failed_folds:
            record.status = "failed"
        elif all(trace.null for trace in record.folds.values()):
            record.status = "null"
        records.append(record)
    return records
