"""Configurations read from YAML files and mappings, overridden by dotted keys, and validated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, get_args

from pydantic import BaseModel, ValidationError

from raysel.config.schema import NIFTI, StudyConfig
from raysel.config.yaml_text import MOST_CHARACTERS, MOST_LEVELS, dump_yaml, parse_yaml
from raysel.core.credentials import keep_all_credentials
from raysel.core.errors import ConfigError, suggestion


def flat(section: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the keys of nested mappings, joined by dots, with their values."""
    for key, value in section.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


#: Name of the file in a study's directory that samples given in memory are written to, and ``dataset.path`` until then.
OWN_DATA = "data.arrow"
#: Keys that say where the samples come from, of which a configuration has one.
_ORIGINS = ("path", "source", "tasks")
_DOTTED_ORIGINS = tuple(f"dataset.{key}" for key in _ORIGINS)


def apply_overrides(
    raw: dict[str, Any],
    overrides: Mapping[str, Any] | Iterable[str],
    origin: str,
    *,
    own_data: bool = False,
    builtin: bool = False,
) -> None:
    """Lay overrides over a configuration.

    An override of one of ``dataset.path``, ``dataset.source`` and ``dataset.tasks`` unsets the other two, unless they
    are overridden too; ``source: nifti`` and ``path`` belong together, and neither unsets the other.
    """
    changes = list(_changes(overrides))
    named = [key for key, value, _ in changes if value is not None and key in _DOTTED_ORIGINS]
    if own_data:
        if named:
            raise ConfigError(f"override {named[0]}: the samples are given in memory; leave one of the two out.")
        _name_own_data(raw, origin, builtin=builtin)
    for key, value, _ in changes:
        if key in named:
            _unset_origins(raw, key.removeprefix("dataset."), value)
    for key, value, where in changes:
        set_key(raw, key, value, where)


def set_key(raw: dict[str, Any], key: str, value: Any, origin: str) -> None:
    """Set a key of a configuration that is given as plain data."""
    parts = _parts(raw, str(key).strip())
    if not all(parts):
        raise ConfigError(f"{origin}: {key!r} is not a key; write it with dots, e.g. cv.outer")
    if len(parts) > MOST_LEVELS:
        raise ConfigError(f"{origin[:80]}: the key has {len(parts)} parts; at most {MOST_LEVELS} levels are read.")
    section = raw
    for part in parts[:-1]:
        if section.get(part) is None:
            section[part] = {}
        section = section[part]
        if not isinstance(section, dict):
            raise ConfigError(f"{origin}: `{part}` is set to a value and has no keys below it.")
    section[parts[-1]] = value


def _parts(raw: Mapping[str, Any], key: str) -> list[str]:
    """Return the parts of a dotted key; a label of a member is one part."""
    first, _, rest = key.partition(".")
    members = raw.get("compare") if first == "compare" else None
    if isinstance(members, Mapping):
        for label in sorted(members, key=len, reverse=True):
            if rest == label or rest.startswith(f"{label}."):
                return [first, label, *(rest.removeprefix(label)[1:].split(".") if rest != label else ())]
    return key.split(".")


def _changes(overrides: Mapping[str, Any] | Iterable[str]) -> Iterator[tuple[str, Any, str]]:
    """Yield the key of each override, its value and its origin for error messages."""
    if isinstance(overrides, Mapping):
        for key, value in overrides.items():
            yield str(key).strip(), plain(value), f"override {key}"
        return
    for text in [overrides] if isinstance(overrides, str) else overrides or ():
        if not isinstance(text, str):
            raise ConfigError(f"override {text!r}: give strings such as 'cv.outer=5', or one mapping.")
        key, value = _parse_override(text)
        yield key.strip(), value, f"override {text}"


def _parse_override(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"override {text}: an override must have the form key=value, e.g. cv.outer=5")
    return key, parse_yaml(value, f"override {text if len(text) < 80 else f'{text[:77]}...'}")


def _unset_origins(raw: dict[str, Any], chosen: str, value: Any = None) -> None:
    """Unset what the configuration says on the origin of the samples, which an override of one key replaces."""
    section = raw.get("dataset")
    if isinstance(section, dict):
        # A table of NIfTI files has both keys.
        nifti = value == NIFTI if chosen == "source" else chosen == "path" and section.get("source") == NIFTI
        for key in _ORIGINS:
            if key != chosen and not (nifti and key in ("path", "source")):
                section.pop(key, None)


def _name_own_data(raw: dict[str, Any], origin: str, *, builtin: bool) -> None:
    """Set ``dataset.path`` to the file that samples given in memory will be written to."""
    section = raw.get("dataset")
    section = {} if section is None else section
    if not isinstance(section, dict):
        return  # the validation says so
    named = [key for key in ("path", "tasks") if section.get(key) is not None]
    if section.get("source") == NIFTI:
        named.append("source")
    if named and not builtin:
        raise ConfigError(
            f"{origin}: dataset.{named[0]} names data, and the samples are given in memory; leave one of the two out."
        )
    _unset_origins(raw, "path")
    raw["dataset"] = {key: value for key, value in section.items() if key != "source"} | {"path": OWN_DATA}


def plain(value: Any) -> Any:
    """Return arrays, tuples, ranges, numbers of NumPy and paths as the lists, numbers and strings of YAML."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


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
