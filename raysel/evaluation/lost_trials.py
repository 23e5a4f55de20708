"""Trials that failed as their worker process died, which a resumed study runs again."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable

from raysel.config.schema import SearchConfig
from raysel.evaluation.records import PathRecord, TrialRecord


def worker_died(n_times: int, why: str = "killed, or out of memory") -> str:
    """Return the error of a trial whose worker process died in every attempt."""
    return f"the worker process died {n_times} times ({why})"


#: Errors of lost trials; raysel 0.7 took changed data and full disks for errors of a trial.
_LOST = re.compile(
    r"\A(?:on .*: inner fold \d+: )?the worker process died \d+ times \([\w, ]+\)\Z"
    r"|DataError: .* is not the file that was opened first"
    r"|DataError: .* cannot be read"
    r"|DataError: .* is empty \(0 bytes\)"
    r"|OSError: \[Errno"
    rf" (?:{errno.EIO}|{errno.ENOSPC}|{errno.EDQUOT}|{errno.EROFS}|{errno.ESTALE})\]"
)


def was_lost(record: TrialRecord | PathRecord) -> bool:
    """Return whether a trial failed for no fault of its own, such as an error of its method."""
    return record.status == "failed" and _LOST.search(record.failure) is not None


def follows(record: TrialRecord, lost: TrialRecord, search: SearchConfig) -> bool:
    """Return whether a trial would be another one if a lost one of its fold had not failed.

    So are those in later batches of a synchronous search; other searches that learn have no fixed
    order.
    """
    if not search.synchronous or record.fold != lost.fold:
        return False
    return record.number // search.batch_size > lost.number // search.batch_size


def valid_records(
    records: Iterable[TrialRecord | PathRecord], search: SearchConfig
) -> list[TrialRecord | PathRecord]:
    """Return the records that a resumed study keeps: neither lost ones nor their followers."""
    records = list(records)
    lost = [record for record in records if isinstance(record, TrialRecord) and was_lost(record)]

    def is_valid(record: TrialRecord | PathRecord) -> bool:
        if isinstance(record, TrialRecord) and any(follows(record, one, search) for one in lost):
            return False
        return not was_lost(record)

    return list(filter(is_valid, records))
