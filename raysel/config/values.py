"""Values of keys that functions check: resources, labels, ids of configurations."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from raysel.core.errors import suggestion

#: Bytes of the units of memory.
_UNITS = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12} | {
    f"{prefix}iB": 2 ** (10 * power) for power, prefix in enumerate("KMGT", start=1)
}
#: Names that Ray gives a meaning of its own, in the spelling that Ray knows, and in small letters
#: for a comparison.
_KNOWN = {"gpu": "GPU", "gpus": "GPU", "memory": "memory", "mem": "memory", "ram": "memory"}
_RESERVED = ("node:", "object_store_memory", "bundle")
#: Values of `dataset.feature_groups` beside paths and lists: the modalities are the groups, and
#: columns that correlate form them.
MODALITIES, CORRELATED = "modalities", "correlated"
#: Largest size of a manifest in bytes.
_MOST_BYTES = 2**30
#: Former name of ``evaluation.estimator``, which is read and means the same.
FORMER_ESTIMATOR_KEY = "classifier"
#: Value of ``cv.outer`` that leaves one sample, group or block out in each fold.
LEAVE_ONE_OUT = "n_samples"


def resources_from_yaml(raw: Any) -> dict[str, float] | None:
    """Check the resources of a trial and convert their amounts to numbers."""
    if raw is None:
        return None
    if not isinstance(raw, dict):
        raise ValueError(
            f"{raw!r} is not a mapping: give a name and an amount of each, e.g. {{GPU: 1, memory: 2"
            " GiB}"
        )
    return {
        _name(name): _memory(value) if name == "memory" else _amount(name, value)
        for name, value in raw.items()
    }


def n_trials_at_once(node: Mapping[str, float], needs: Mapping[str, float]) -> int:
    """Return the number of trials that a node can run at once."""
    # Ray counts in ten-thousandths: 3 x 0.1 fit in 0.3.
    return min(int(node.get(name, 0.0) / need + 1e-6) for name, need in needs.items() if need > 0)


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"{name!r} is not the name of a resource: give text, e.g. GPU")
    if name.lower() in ("cpu", "cpus", "num_cpus"):
        raise ValueError(f"`{name}` has a key of its own: set search.cpus_per_trial")
    if name.startswith(_RESERVED):
        raise ValueError(
            f"`{name}` is a resource that Ray keeps for itself: give GPU, memory or a name of"
            " your own"
        )
    known = _KNOWN.get(name.lower().removeprefix("num_"), name)
    if known != name:
        raise ValueError(f"unknown resource `{name}`; did you mean `{known}`?")
    return name


def _amount(name: str, value: Any) -> float:
    """Amount of a resource: Ray divides one into parts, but hands out several whole."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or value <= 0
    ):
        raise ValueError(f"`{name}` is {value!r}: give a number above 0, e.g. {name}: 1")
    if value > 1 and value != int(value):
        raise ValueError(
            f"`{name}` is {value:g}: above 1 it must be a whole number, e.g. {math.ceil(value)}"
        )
    if value < 1e-4:
        raise ValueError(f"`{name}` is {value:g}: the smallest part of a resource is 0.0001")
    return float(value)


def _memory(value: Any) -> float:
    """Bytes, given as a number or as text with a unit."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
        if match and match[2] in _UNITS:
            value = math.ceil(float(match[1]) * _UNITS[match[2]])
        elif match:
            units = [unit for unit in _UNITS if unit]
            hint = suggestion(match[2], units, f"give one of {', '.join(units)}")
            raise ValueError(f"`memory` is {value!r}: unknown unit {match[2]!r}; {hint}")
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or value < 1
    ):
        raise ValueError(
            f"`memory` is {value!r}: give bytes, or a number with a unit, e.g. memory: 2 GiB"
        )
    if value != int(value):
        raise ValueError(
            f"`memory` is {value!r}: give a whole number of bytes, or a unit, e.g. memory: 2 GiB"
        )
    return float(value)


def tried_configurations(value: Any) -> Any:
    """Return the ids of the configurations that a manifest lists as tried."""
    if isinstance(value, str):
        try:
            if not Path(value).is_file() or Path(value).stat().st_size > _MOST_BYTES:
                raise ValueError("there is no such file, or it is larger than 1 GiB")
            manifest = json.loads(Path(value).read_text(encoding="utf-8"))
            value = tuple(sorted({str(entry["id"]) for entry in manifest["tried"]}))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(
                f"{value!r} cannot be read as the manifest.json of a study: {error!r}"
            ) from error
    if value is not None and not value:
        raise ValueError("no configuration is listed; leave the key out to try all")
    return value


def class_label(value: Any) -> str | int:
    """Name or number of a class; YAML's true and yes are neither."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) or type(value) is int:
        return value
    raise ValueError(
        f"{value!r} is not a class: give its name, in quotes if it is yes, no, true or false, or"
        " its number"
    )


def label_columns(value: Any) -> str | tuple[str, ...]:
    """Name of the labels' column or array, or names of several columns of quantities."""
    names = several(value)
    if (
        not all(isinstance(name, str) and name for name in names)
        or len(set(names)) < len(names)
        or not names
    ):
        raise ValueError(
            f"{value!r} is not the name of a column or array, nor a list of different names"
        )
    if len(names) > 1:
        return tuple(names)
    return names[0]


def feature_groups(value: Any) -> str | dict[str, Any]:
    """Check what forms the groups of features: a path, a word, a correlation, or lists of names."""
    if isinstance(value, str) and value:
        return value
    if not isinstance(value, Mapping) or not value:
        raise ValueError(
            f"{value!r} forms no groups: give the path of a table with the columns feature and"
            " group, modalities, {correlated: 0.7}, or a list of features by group"
        )
    at = value.get(CORRELATED)
    if len(value) == 1 and isinstance(at, int | float):
        if isinstance(at, bool) or not 0 < at <= 1:
            raise ValueError(f"{CORRELATED}: {at} must be above 0 and at most 1, e.g. 0.7")
        return {CORRELATED: float(at)}
    for name, features in value.items():
        if not isinstance(features, list | tuple) or not features:
            raise ValueError(
                f"the group {name} is {features!r}: list its features, e.g. {name}: [a, b]"
            )
    return {str(name): list(map(str, features)) for name, features in value.items()}


def repeated(names: Sequence[str]) -> str | None:
    """First name that is repeated; None if all differ."""
    return next((name for name in names if names.count(name) > 1), None)


def several(value: Any) -> Any:
    """A list of values, also where one is given alone."""
    if isinstance(value, list | tuple):
        return value
    return (value,)


def with_estimator_key(raw: Any) -> Any:
    """The section ``evaluation`` as plain data, with the former name of ``estimator`` replaced."""
    if not isinstance(raw, Mapping) or FORMER_ESTIMATOR_KEY not in raw:
        return raw
    if "estimator" in raw:
        raise ValueError("`classifier` is the former name of `estimator`; keep one of the two")
    return {
        ("estimator" if key == FORMER_ESTIMATOR_KEY else key): value for key, value in raw.items()
    }


def scoring_estimator_from_yaml(value: Any) -> Any:
    """Return what scores the best features: a short name, or a section."""
    if isinstance(value, str) and "." in value:
        return {"name": value}
    if isinstance(value, str) and value not in ("auto", "native", "knn", "linear_svm", "ridge"):
        raise ValueError(
            "Input should be 'auto', 'native', 'knn', 'linear_svm', 'ridge' or the dotted name of"
            f" a class, e.g. sklearn.linear_model.LogisticRegression, not {value!r}"
        )
    return value


def outer_folds(raw: Any) -> int | str:
    """Check a number of outer folds, or the word for as many as samples."""
    if raw == LEAVE_ONE_OUT or (type(raw) is int and raw > 1):
        number: int | str = raw
        return number
    raise ValueError(f"input should be a whole number from 2 on or {LEAVE_ONE_OUT}, not {raw!r}")
