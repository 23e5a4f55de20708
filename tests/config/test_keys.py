"""The table of configuration keys is complete, and what it says of a key is so."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from raysel.config import load_config
from raysel.config.keys import comparison_reference, config_reference
from raysel.config.schema import StudyConfig
from raysel.core.errors import ConfigError

SCHEMA = StudyConfig.model_json_schema(mode="serialization")
REFERENCE = {entry.key: entry for entry in config_reference()}
REQUIRED = [entry.key for entry in REFERENCE.values() if entry.default == "required"]
WITH_DEFAULT = [
    entry.key for entry in REFERENCE.values() if entry.default not in ("required", "not set")
]
#: One of each two is set.
ORIGINS = {"dataset.source", "dataset.path", "dataset.tasks[].source", "dataset.tasks[].path"}

ONE = {
    "name": "few",
    "dataset": {"source": "digits"},
    "solver": {"name": "smr"},
    "evaluation": {"n_features": [4]},
}
NATIVE = ONE | {"evaluation": {"classifier": "native"}}
TASKS = ONE | {
    "dataset": {"tasks": [{"name": "a", "source": "digits"}, {"name": "b", "source": "iris"}]}
}


def leaves(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """The keys that hold no section, by pydantic's JSON schema."""
    for name, entry in schema["properties"].items():
        parts = [entry, *entry.get("anyOf", ())]
        if name == "estimator":  # a word, or a section
            yield prefix + name
        elif sections := [part["$ref"] for part in parts if "$ref" in part]:
            yield from leaves(section(sections[0]), f"{prefix}{name}.")
        elif lists := [part["items"]["$ref"] for part in parts if "$ref" in part.get("items", ())]:
            yield from leaves(section(lists[0]), f"{prefix}{name}[].")
        else:
            yield prefix + name


def section(reference: str) -> dict[str, Any]:
    return SCHEMA["$defs"][reference.rpartition("/")[2]]


def study(key: str, value: str | None = None) -> StudyConfig:
    """A small study in which the key may stand, with a value of the table, or without the key."""
    if key.startswith("dataset.tasks[]"):
        raw = copy.deepcopy(TASKS)
        raw["dataset"]["tasks"][0] |= (
            {} if value is None else {key.rpartition(".")[2]: yaml.safe_load(value)}
        )
        return load_config(raw)
    raw = NATIVE if key == "evaluation.n_features" else ONE
    return load_config(raw, [] if value is None else [f"{key}={value}"])


def held(raw: dict[str, Any], key: str) -> tuple[dict[str, Any], str]:
    """The section that holds a key, the first of a list, and the key's own name."""
    holder: Any = raw
    *sections, name = key.replace("[]", ".0").split(".")
    for part in sections:
        holder = holder[int(part)] if part.isdigit() else holder[part]
    return holder, name


def test_the_table_holds_every_key_of_the_schema_once():
    keys = [entry.key for entry in config_reference()]
    assert keys == list(leaves(SCHEMA))
    assert len(set(keys)) == len(keys) > 40


def test_a_description_is_a_sentence():
    of_comparisons = {entry.key: entry for entry in comparison_reference()}
    for entry in (*REFERENCE.values(), *of_comparisons.values()):
        assert re.fullmatch(r"[A-Z$].*[^.\s]\.", entry.description), entry.description
        assert "  " not in entry.description
    assert of_comparisons["compare"][1:3] == ("mapping of name to keys of a study", "required")


def test_a_default_is_what_a_missing_key_means():
    assert [key for key in WITH_DEFAULT if study(key, REFERENCE[key].default) != study(key)] == []


def test_a_key_that_is_not_set_has_no_value():
    for key in set(REFERENCE) - {*REQUIRED, *WITH_DEFAULT, *ORIGINS}:
        holder, name = held(study(key).to_dict(), key)
        assert name not in holder


def test_a_required_key_is_missed():
    for key in REQUIRED:
        raw = copy.deepcopy(TASKS)
        holder, name = held(raw, key)
        del holder[name]
        with pytest.raises(
            ConfigError, match=re.escape(f"{key.replace('[]', '.0')}: this key is required")
        ):
            load_config(raw)


def test_each_allowed_value_is_taken():
    for entry in REFERENCE.values():
        for value in entry.type.split(" | ") if " | " in entry.type else ():
            config = study(entry.key, value)
            holder, name = held(config.model_dump(mode="json"), entry.key)
            assert holder[name] == yaml.safe_load(value), entry.key


def test_the_bounds_are_those_of_the_schema():
    for key in (entry.key for entry in REFERENCE.values() if re.match(r"integer >=", entry.type)):
        bounds = dict(re.findall(r"(>=|<=|<) (\d+)", REFERENCE[key].type))
        with pytest.raises(ConfigError, match=re.escape(key)):
            study(key, str(int(bounds[">="]) - 1))
        if "<=" in bounds:
            study(key, bounds["<="])
            with pytest.raises(ConfigError, match=re.escape(key)):
                study(key, str(int(bounds["<="]) + 1))
