"""Resources of a trial: names that Ray knows, amounts that it can hand out, and messages that
say what to write.
"""

from __future__ import annotations

import pytest
from small_studies import raw_config

from raysel.config import config_from_dict
from raysel.config.keys import config_reference
from raysel.core.errors import ConfigError


def search(**keys):
    return config_from_dict(raw_config(search={"executor": "ray", **keys})).search


def test_needs_of_a_trial():
    for resources, needs in (
        (None, {}),
        ({"GPU": 1}, {"GPU": 1.0}),
        ({"GPU": 0.25, "licence": 3}, {"GPU": 0.25, "licence": 3.0}),
        ({"memory": 10**9}, {"memory": 1e9}),
        ({"memory": "2 GiB"}, {"memory": 2.0**31}),
        ({"memory": "1.5GB"}, {"memory": 1.5e9}),
    ):
        assert search(cpus_per_trial=2, resources=resources).needs == {"CPU": 2.0, **needs}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gpu": 1}, "unknown resource `gpu`; did you mean `GPU`"),
        ({"num_gpus": 1}, "did you mean `GPU`"),
        ({"Memory": 1}, "did you mean `memory`"),
        ({"CPU": 2}, r"`CPU` has a key of its own: set search\.cpus_per_trial"),
        ({"node:10.0.0.1": 1}, "that Ray keeps for itself"),
        ({"GPU": 1.5}, "above 1 it must be a whole number, e.g. 2"),
        ({"GPU": 0}, "give a number above 0"),
        ({"GPU": True}, "give a number above 0"),
        ({"GPU": "1"}, "give a number above 0"),
        ({"x": float("inf")}, "give a number above 0"),
        ({"memory": "2 Gib"}, "unknown unit 'Gib'; did you mean `GiB`"),
        ({"memory": "much"}, "give bytes, or a number with a unit, e.g. memory: 2 GiB"),
        ({"memory": -1}, "give bytes"),
        ("GPU", "is not a mapping"),
    ],
)
def test_resources_that_cannot_be_used(given, message):
    with pytest.raises(ConfigError, match=rf"search\.resources: .*{message}"):
        search(resources=given)


def test_resources_are_for_ray():
    with pytest.raises(ConfigError, match=r"`resources` \(GPU\) are for executor ray"):
        config_from_dict(raw_config(search={"executor": "serial", "resources": {"GPU": 1}}))


#: What may stand in place of any value: other types, numbers that are none or too large, text that
#: no file can hold.
ANYTHING = (
    *("x", "", "\ud800", "a\0b", b"x", 3, -1, 0, 2.5, True, False, 1e300, 10**400, -(2**63)),
    *(float("nan"), float("inf"), [], [1], ["x"], [[]], [None], {}, {"x": 1}, {"": None}, {1: 2}),
)


def refusal(raw):
    """What is said of a configuration; None if it is read."""
    try:
        config_from_dict(raw)
    except ConfigError as error:
        return str(error)
    return None


@pytest.mark.parametrize("key", [key.key for key in config_reference()])
def test_a_value_of_any_type_is_read_or_refused_by_the_name_of_its_key(key):
    *sections, last = key.split(".")
    for value in ANYTHING:
        raw = {"name": "few", "dataset": {"path": "few.csv"}, "solver": {"name": "smr"}}
        section = raw
        for part in sections:
            if part == "tasks[]":
                section.clear()
                named = [{"name": name, "path": f"{name}.csv"} for name in "ab"]
                section, _ = section.setdefault("tasks", named)
            else:
                section = section.setdefault(part, {})
        section[last] = value
        told = refusal(raw)
        assert told is None or last in told, value
