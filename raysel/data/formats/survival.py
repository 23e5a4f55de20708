"""Recognition, by their names, of the time to an event and of whether it happened."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Endpoints of follow-up: overall survival, survival without progression, disease, relapse, events,
#: metastases, ...
_ENDPOINTS = _words("os pfs dfs rfs efs dss pfi dfi dmfs mfs lrfs ttp bcr fu css")
#: Words of a time to an event, and units of time, which are one beside an endpoint or "to".
_TIMES = _words("time duration survival surv followup futime survtime stime tte ttd")
_UNITS = _words("day days week weeks month months mo year years yr yrs hours")
#: Words that say whether an event happened, and those that may.
_EVENTS = _words("event events censor censored censoring cens fustat")
_STATES = _words(
    "status indicator dead death deceased died alive vital relapse relapsed recurrence recurred "
    "progression progressed failure failed observed delta"
)
#: Further words in the names of either.
_BESIDE = _words(
    "to of in at until since last first follow up overall free specific disease is has was the"
)
#: Names of both in programs for survival.
_SHORT = {"t": "e", "y_time": "y_event"}
_WORD = re.compile(r"[a-z]+")


def find_event_times(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs of the column of a time and of its event, e.g. ``OS_time``, ``OS_event``."""
    words = {name: frozenset(_WORD.findall(name.lower())) for name in names}
    times = [name for name in words if _is_time(words[name])]
    events = [name for name in words if name not in times and _is_event(words[name])]
    pairs = product(times, events)
    found = [(time, event) for time, event in pairs if _fit(words[time], words[event])]
    of_short = {name.lower(): name for name in words}
    short = [(of_short[t], of_short[e]) for t, e in _SHORT.items() if {t, e} <= of_short.keys()]
    return [*found, *short]


def _is_time(words: frozenset[str]) -> bool:
    aimed = words & _UNITS and (words & _ENDPOINTS or words & {"to", "follow"})
    state = words & (_STATES | _EVENTS) and "to" not in words
    return bool((words & _TIMES and not state) or aimed or (words and words <= _UNITS))


def _is_event(words: frozenset[str]) -> bool:
    return bool(words & (_EVENTS | _STATES) or (words and words <= _ENDPOINTS))


def _fit(time: frozenset[str], event: frozenset[str]) -> bool:
    """Return whether a time and an event may be of one endpoint, with no word of another thing."""
    if time <= _UNITS and not event & _EVENTS:
        return False
    both = (time & _ENDPOINTS, event & _ENDPOINTS)
    known = _TIMES | _UNITS | _EVENTS | _STATES | _BESIDE | _ENDPOINTS
    return (both[0] == both[1] or not all(both)) and (time - known) == (event - known)
