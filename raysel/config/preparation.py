"""Steps of ``dataset.prepare`` as a configuration writes them, and as they are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from raysel.config.values import several
from raysel.core.errors import suggestion

_STRATEGIES = ("median", "mean", "most_frequent", "knn")
#: Words for columns of a kind.
KINDS = ("numbers", "categories")
_EXAMPLE = "e.g. {impute: median}, encode, or {sklearn.preprocessing.PowerTransformer: {}}"


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _share(value: Any) -> bool:
    return isinstance(value, float) and 0 < value < 1


def _correlation(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1


def _quantiles(value: Any) -> bool:
    if not isinstance(value, list | tuple) or len(value) != 2:
        return False
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in value)
    return numbers and 0 <= value[0] < value[1] <= 1


@dataclass(frozen=True)
class Parameter:
    """Parameter of a step with a short name."""

    default: Any
    accepts: Callable[[Any], bool]
    #: What it takes, as text.
    takes: str


@dataclass(frozen=True)
class ShortName:
    """Step with a short name: its parameters, the first of which may stand in place of all."""

    parameters: Mapping[str, Parameter] = field(default_factory=dict)


#: Steps with a short name.
SHORT_NAMES: Mapping[str, ShortName] = {
    "impute": ShortName(
        {
            "strategy": Parameter(
                "median", lambda value: value in _STRATEGIES, f"one of {', '.join(_STRATEGIES)}"
            ),
            "n_neighbors": Parameter(5, _count, "a whole number from 1 on, for strategy knn"),
            "indicator": Parameter(False, lambda value: isinstance(value, bool), "true or false"),
        }
    ),
    "encode": ShortName(
        {
            "min_frequency": Parameter(
                0.01,
                lambda value: _share(value) or _count(value),
                "the share, or the number, of the training samples below which categories are"
                " joined",
            )
        }
    ),
    "log1p": ShortName(),
    "standardise": ShortName(),
    "clip": ShortName(
        {
            "quantiles": Parameter(
                (0.01, 0.99), _quantiles, "a lower and an upper quantile, e.g. [0.01, 0.99]"
            )
        }
    ),
    "drop_near_constant": ShortName(
        {
            "share": Parameter(
                0.95,
                _share,
                "the share of training samples with one value from which a column is left out",
            )
        }
    ),
    "residualise": ShortName(),
    "harmonise": ShortName(
        {
            "site": Parameter(
                None,
                lambda value: isinstance(value, str) and value != "",
                "the column that names the site",
            )
        }
    ),
    "parcels": ShortName({"number": Parameter(None, _count, "a whole number from 1 on")}),
    "clusters": ShortName(
        {
            "correlation": Parameter(
                0.7,
                _correlation,
                "the absolute correlation, above 0 and at most 1, that any two columns of a"
                " cluster reach",
            )
        }
    ),
}
#: Steps whose number may be searched as a parameter of the solver.
_SEARCHED = ("parcels",)
_JOINING = ("parcels", "clusters")


def step_from_yaml(raw: Any) -> dict[str, Any]:
    """Check a step, and return its name, its parameters and its columns."""
    if isinstance(raw, str):
        raw = {raw: {}}
    if not isinstance(raw, Mapping) or not all(isinstance(key, str) for key in raw):
        raise ValueError(f"{raw!r} is no step: give its name and its parameters, {_EXAMPLE}")
    names = [key for key in raw if key != "columns"]
    if len(names) != 1:
        raise ValueError(
            f"a step names {' and '.join(names) or 'nothing'}: give one name a step, {_EXAMPLE}"
        )
    (name,) = names
    if name not in SHORT_NAMES and "." not in name:
        known = suggestion(name, SHORT_NAMES, f"known: {', '.join(SHORT_NAMES)}")
        raise ValueError(f"unknown step `{name}`; {known}")
    step: dict[str, Any] = {name: _parameters(name, raw[name])}
    if raw.get("columns") is not None:
        step["columns"] = _columns(raw["columns"])
    return step


def step_name(step: Mapping[str, Any]) -> str:
    """Return the name of a step as `step_from_yaml` returns it."""
    return next(key for key in step if key != "columns")


def joins_columns(steps: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether one of some steps joins columns."""
    return any(step_name(step) in _JOINING for step in steps)


def searched_steps(steps: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the names of the steps whose number is left to a search."""
    names = {step_name(step) for step in steps if not step[step_name(step)]}
    return frozenset(names & set(_SEARCHED))


def dotted_steps(steps: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the dotted names among steps."""
    return [name for step in steps if "." in (name := step_name(step))]


def _parameters(name: str, raw: Any) -> dict[str, Any]:
    if name not in SHORT_NAMES:
        if raw in (None, True):
            return {}
        if not isinstance(raw, Mapping) or not all(
            isinstance(key, str) and _is_plain(value) for key, value in raw.items()
        ):
            raise ValueError(
                f"the parameters of {name} are {raw!r}: give names with numbers, texts or lists of"
                " these"
            )
        return dict(raw)
    known = SHORT_NAMES[name].parameters
    if not isinstance(raw, Mapping):
        first = next(iter(known), "")
        raw = {} if raw is None or raw is True else {first: raw}
    parameters = {}
    for key, value in raw.items():
        if key not in known:
            what = "it takes none"
            if known:
                what = suggestion(key, known, f"known: {', '.join(known)}")
            raise ValueError(f"{name} has no parameter {key or repr(value)}; {what}")
        if not known[key].accepts(value):
            raise ValueError(f"{key} of {name} is {value!r}: give {known[key].takes}")
        if value != known[key].default and tuple(_as_list(value)) != known[key].default:
            parameters[key] = value
    if name == "harmonise" and "site" not in parameters:
        raise ValueError(
            "harmonise needs the column that names the site, e.g. {harmonise: scanner}"
        )
    if "n_neighbors" in parameters and parameters.get("strategy") != "knn":
        raise ValueError("n_neighbors of impute is for strategy knn; leave it out")
    return parameters


def _as_list(value: Any) -> list[Any]:
    return list(several(value))


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(part) for part in value)
    return value is None or isinstance(value, bool | int | float | str)


def _columns(raw: Any) -> Any:
    if isinstance(raw, Mapping):
        if list(raw) != ["modality"] or not all(
            isinstance(name, str) for name in _as_list(raw["modality"])
        ):
            raise ValueError(f"columns are {raw!r}: give names, or {{modality: NAME}}")
        return {"modality": _as_list(raw["modality"])}
    if raw in KINDS:
        return raw
    names = _as_list(raw)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(
            f"columns are {raw!r}: give names or patterns, e.g. [age, gene*], or one of"
            f" {', '.join(KINDS)}"
        )
    return names
