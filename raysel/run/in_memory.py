"""Run of a study without a directory: records and models stay in memory."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from raysel.core import __version__
from raysel.core.machine import now
from raysel.execution.executor import Executor
from raysel.results.result import StudyResult
from raysel.run.recording import study_record
from raysel.run.steps import noise_record, search, winners
from raysel.study.definition import Study
from raysel.study.stored import StoredStudy
from raysel.tracking.log import Listener, Progress, StudyLog
from raysel.tracking.records import EndRecord, Record


def run_in_memory(
    study: Study, executor: Executor, listeners: Sequence[Listener] = ()
) -> StudyResult:
    """Run a study and return its result, to the last bit that of a run in a directory."""
    started = now()
    # Nothing resumes the study, so that its code and libraries need no identity, which takes a
    # second to find.
    record = study_record(
        study, id_=uuid.uuid4().hex, uri="", started=started, versions={"raysel": __version__}
    )
    records: list[Record] = [record]
    models = {}
    progress = Progress(study.n_trials, study.config.evaluation.metric)
    with StudyLog(records, progress, listeners=listeners) as log, executor:
        chosen = winners(study, search(study, executor, log))
        log.enter_phase("refitting the winners")
        refits = executor.run_refits([(fold, winner) for fold, winner, _ in chosen])
        for (refit, model), (_, _, n_tied) in zip(refits, chosen, strict=True):
            refit.n_tied = n_tied
            log.record(refit)
            models[refit.fold] = model
        if study.findings.ranks:
            log.record(noise_record(study, chosen))
        log.record(EndRecord("finished", started, max(now(), started)))
    return StudyResult(StoredStudy.of(records), models)
