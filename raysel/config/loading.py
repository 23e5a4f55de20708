"""Explanation of validation errors: the key, what is wrong with its value, and a remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, get_args

from pydantic import BaseModel, ValidationError

from raysel.config.overrides import apply_overrides, plain
from raysel.config.schema import StudyConfig
from raysel.config.yaml_text import MOST_CHARACTERS, dump_yaml, parse_yaml
from raysel.core.credentials import keep_all_credentials
from raysel.core.errors import ConfigError, suggestion

#: Terms of pydantic's messages, and the terms of a configuration that replace them.
_WORDS = {
    "valid tuple": "list",
    "Tuple should": "List should",
    "Dictionary should": "Mapping should",
    " after validation": "",
    "valid dictionary": "mapping of keys to values",
    "valid integer": "whole number",
}


def explain(error: ValidationError) -> list[str]:
    """Explain what is wrong with a configuration."""
    return [_line(details) for details in error.errors()]


def _line(details: Mapping[str, Any]) -> str:
    location = [str(part) for part in details["loc"]]
    where = ".".join(location) or "the configuration"
    if details["type"] == "extra_forbidden":
        known = _fields_at(location[:-1]) + ([] if location[1:] else ["compare", "reference"])  # of a comparison
        hint = suggestion(location[-1], known, f"known here: {', '.join(known)}")
        return f"{where}: unknown key; {hint}"
    if details["type"] == "missing":
        return f"{where}: this key is required"
    if details["type"] == "model_type":
        return f"{where}: give its keys ({', '.join(_fields_at(location))}), not {details['input']!r}"
    message = details["msg"].removeprefix("Value error, ")
    for jargon, word in _WORDS.items():
        message = message.replace(jargon, word)
    given = details.get("input")
    shown = "" if isinstance(given, dict | list | BaseModel) or details["type"] == "value_error" else f", not {given!r}"
    return f"{where}: {message[0].lower()}{message[1:]}{shown}"


def _fields_at(location: list[str]) -> list[str]:
    model: Any = StudyConfig
    for part in location:
        if part in model.model_fields:  # otherwise an index into a list, whose sections are of one type
            model = _section_in(model.model_fields[part].annotation) or StudyConfig
    return list(model.model_fields)


def _section_in(annotation: Any) -> Any:
    """Return the section class that an annotation is or contains; None if there is none."""
    if hasattr(annotation, "model_fields"):
        return annotation
    return next((found for part in get_args(annotation) if (found := _section_in(part))), None)


class PlainData(Protocol):
    """Configuration of a study or of a comparison."""

    def to_dict(self) -> dict[str, Any]:
        """The configuration as plain data."""


def builtin_configs() -> dict[str, Path]:
    """Return the configurations of the built-in studies."""
    package = Path(__file__).resolve().parent.parent
    # Inside the package if it is installed, beside it in a checkout.
    for folder in (package / "conf", package.parent / "conf"):
        if folder.is_dir():
            return {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    return {}


def load_config(
    source: str | Path | Mapping[str, Any] | StudyConfig,
    overrides: Mapping[str, Any] | Iterable[str] = (),
    *,
    own_data: bool = False,
) -> StudyConfig:
    """Read, override and validate a study's configuration."""
    raw, origin = read_raw(
        source.to_dict() if isinstance(source, StudyConfig) else source, overrides, own_data=own_data
    )
    if raw.get("compare") is not None:
        raise ConfigError(
            f"{origin}: `compare` makes this the configuration of a comparison, not of one study; use run_comparison."
        )
    return config_from_dict(raw, origin)


def read_raw(
    source: str | Path | Mapping[str, Any],
    overrides: Mapping[str, Any] | Iterable[str] = (),
    *,
    own_data: bool = False,
) -> tuple[dict[str, Any], str]:
    """Read and override a configuration of a study or of a comparison, without validating it."""
    if isinstance(source, Mapping):
        raw, origin = plain(source), "configuration"
    elif isinstance(source, str | Path):
        raw, origin = parse_yaml(_read(Path(source)), str(source)), str(source)
    else:
        raise ConfigError(f"{source!r} is not a configuration; give a path, the name of a built-in study or a mapping.")
    if not isinstance(raw, dict):
        raise ConfigError(f"{origin} holds no configuration; give keys such as name, dataset and solver.")
    apply_overrides(raw, overrides, origin, own_data=own_data, builtin=_is_builtin(source))
    return keep_all_credentials(raw), origin


def names_data(
    source: str | Path | Mapping[str, Any] | PlainData,
    overrides: Mapping[str, Any] | Iterable[str] = (),
) -> bool:
    """Return whether a configuration names a data file or tasks."""
    raw: Any = {} if _is_builtin(source) else source
    if not isinstance(raw, str | Path | Mapping):
        raw = raw.to_dict()
    section = read_raw(raw, overrides)[0].get("dataset")
    return isinstance(section, dict) and any(section.get(key) is not None for key in ("path", "tasks"))


def config_from_dict(raw: Mapping[str, Any], origin: str = "configuration") -> StudyConfig:
    """Validate a configuration given as plain data."""
    try:
        return StudyConfig.model_validate(without_null(raw))
    except ValidationError as error:
        raise ConfigError("\n  ".join([f"{origin}:", *explain(error)])) from error


def dump_config(config: PlainData) -> str:
    """Return a configuration as YAML that `load_config` or `load_comparison` reads back."""
    return dump_yaml(config.to_dict())


def _is_builtin(source: object) -> bool:
    """Return whether a source of a configuration is the name of a built-in one."""
    return isinstance(source, str | Path) and not Path(source).is_file()


def _read(path: Path) -> str:
    """Return the text of a file, or of the built-in study of this name."""
    builtin, name = builtin_configs(), path.name.removesuffix(".yaml")
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(MOST_CHARACTERS + 1)  # which is refused with one character more than the limit
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} cannot be read: it is not UTF-8 text; give the YAML file of a study.") from error
    except (FileNotFoundError, IsADirectoryError) as error:
        if name in builtin and path.parent in (Path(), Path("conf")):
            return builtin[name].read_text(encoding="utf-8")
        hint = suggestion(name, builtin)
        hint = f" {hint[0].upper()}{hint[1:]}" if hint else ""
        place = f"{path}, which is a directory" if isinstance(error, IsADirectoryError) else path
        raise ConfigError(f"no configuration at {place}.{hint} Built-in studies: {', '.join(builtin)}.") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


def without_null(raw: Any) -> Any:
    """Return plain data without the keys whose value is None."""
    if isinstance(raw, Mapping):
        return {key: without_null(value) for key, value in raw.items() if value is not None}
    return raw
