"""How evenly a search fills many slots: its simulated end over CPU / slots, from the measured time
of each part.

RAYSEL_DATA=<folder of ORL.npz> python experiments/benchmarks/search-overhead/slots.py
python experiments/benchmarks/search-overhead/slots.py digits-smr --set cv.outer=2    # a quick look
"""

from __future__ import annotations

import argparse
import heapq
import time
import warnings

from threadpoolctl import threadpool_limits

from raysel.evaluation.records import FoldTrace, TrialRecord
from raysel.execution.batches import BATCH_SECONDS, Batches
from raysel.execution.serial import PreparedFolds
from raysel.execution.trial_plan import trial_plan
from raysel.run.api import prepare_study
from raysel.study.definition import Study

#: CPU seconds of a part, by its configuration and outer fold.
Seconds = dict[tuple[int, str], float]


def measure(study: Study) -> Seconds:
    """Run every part of every trial, one after the other."""
    folds, plan, seconds = PreparedFolds(study, 1.0), trial_plan(study), {}
    params = study.examples[0].params
    with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
        for fold in study.plan.folds:
            for inner in range(len(fold.inner)):
                folds(fold, inner, params)
        for config in iter(plan.propose, None):
            for part in plan.parts:
                started = time.process_time()
                for _ in plan.trial_class(study, {**config, **part}, folds).steps():
                    pass
                seconds[config["configuration"], part["fold"]] = time.process_time() - started
    return seconds


def end_of_batches(study: Study, seconds: Seconds, slots: int) -> float:
    """Simulate the search as `raysel.execution.ray` runs it; return its end."""
    plan = trial_plan(study)
    batches, running, now, number = Batches(plan), [], 0.0, 0
    while True:
        while len(running) < slots and (batch := batches.next(slots)):
            records: list[TrialRecord] = []
            took = 0.0
            while len(records) < len(batch.parts) and took <= BATCH_SECONDS:
                part = batch.parts[len(records)]
                record = plan.empty_record(part)
                record.folds[part["fold"]] = FoldTrace()
                record.started, record.ended = (
                    took,
                    took + seconds[part["configuration"], part["fold"]],
                )
                took = record.ended
                records.append(record)
            number += 1
            heapq.heappush(running, (now + took, number, batch, records))
        if not running:
            return now
        now, _, batch, records = heapq.heappop(running)
        batches.ended(batch, len(records))
        for part, record in zip(batch.parts, records, strict=False):
            batches.join(part, record)


def end_of_trials(study: Study, seconds: Seconds, slots: int) -> float:
    """Simulate a search whose slots each take the next trial with all of its outer folds; return
    its end.
    """
    ends = [0.0] * slots
    for config in iter(trial_plan(study).propose, None):
        took = sum(
            part for (number, _), part in seconds.items() if number == config["configuration"]
        )
        heapq.heapreplace(ends, ends[0] + took)
    return max(ends)


def main() -> None:
    """Print a line for each number of slots."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", nargs="?", default="orl-smr")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--slots", type=int, nargs="+", default=[2, 4, 8, 16, 32])
    arguments = parser.parse_args()
    study = prepare_study(arguments.study, arguments.set)
    seconds = measure(study)
    total = sum(seconds.values())
    print(f"{len(study.configurations)} trials in {len(seconds)} parts, {total:.0f} s of CPU")
    for slots in arguments.slots:
        whole, cut = (
            end(study, seconds, slots) * slots / total for end in (end_of_trials, end_of_batches)
        )
        print(f"{slots} slots: {cut:.3f} of CPU / slots; whole trials {whole:.3f}")


if __name__ == "__main__":
    main()
