"""Names of columns of a time and its event, and of others that only look so."""

from __future__ import annotations

import pytest

from raysel.data.formats.survival import find_event_times


@pytest.mark.parametrize(
    ("time", "event"),
    [
        *(("time", "event"), ("OS_time", "OS_event"), ("OS.time", "OS"), ("PFI.time", "PFI")),
        *(("days_to_death", "censored"), ("time", "status"), ("futime", "fustat"), ("T", "E")),
        *(("OS_MONTHS", "OS_STATUS"), ("survival_days", "dead"), ("time", "DEATH_EVENT")),
        *(("duration", "event_observed"), ("days_to_last_followup", "vital_status")),
        *(("Overall Survival (Months)", "Overall Survival Status"), ("months", "event")),
        *(("follow_up_days", "death"), ("surv_time", "surv_event"), ("tte", "cens")),
        *(("hours_to_death", "censored"), ("hours", "event")),
    ],
)
def test_a_time_and_its_event_are_found_among_other_columns_in_any_order(time, event):
    for names in (["age", time, "sex", event], [event, "age", time]):
        assert find_event_times(names) == [(time, event)]


@pytest.mark.parametrize(
    "names",
    [
        *(("exercise_time", "event"), ("year", "status"), ("time_in_hospital", "death")),
        *(("timestamp", "event"), ("OS_time", "PFS_event"), ("duration", "outcome")),
        *(("month", "outcome"), ("years_employed", "status"), ("reaction_time", "failure")),
        *(("time", "Amount"), ("event", "status"), ("OS_time", "PFS_time")),
        *(("r", "event"), ("u", "event"), ("s_to_h", "event")),
    ],
)
def test_other_names_are_no_time_and_event(names):
    assert find_event_times(names) == []
