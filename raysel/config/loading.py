"""Reading of configurations: YAML, overrides, and errors with the key or line and a remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from raysel.config.explaining import explain
from raysel.config.schema import StudyConfig
from raysel.config.yaml_text import dump_yaml, parse_yaml
from raysel.errors import ConfigError


class PlainData(Protocol):
    """Configuration that `dump_config` writes."""

    def to_dict(self) -> dict[str, Any]:
        """The configuration as plain data."""


def builtin_configs() -> dict[str, Path]:
    """Return the configurations of the built-in studies.

    Returns
    -------
    dict of str to Path
        Paths of the YAML files by the name of the study.
    """
    package = Path(__file__).resolve().parent.parent
    # Inside the package if it is installed, beside it in a checkout.
    for folder in (package / "conf", package.parent / "conf"):
        if folder.is_dir():
            return {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    return {}


def load_config(
    source: str | Path | Mapping[str, Any] | StudyConfig, overrides: Mapping[str, Any] | Iterable[str] = ()
) -> StudyConfig:
    """Read, override and validate a study's configuration.

    Parameters
    ----------
    source : str, Path, mapping or StudyConfig
        Path of a YAML file, name of a built-in study, e.g. ``digits-smr``, or a configuration as plain data or
        validated.
    overrides : mapping of str to object, or iterable of str, default=()
        Values that replace those of the configuration: by dotted key, or as strings ``a.b=value`` with the value in
        YAML; None (``null``) unsets a key.

    Returns
    -------
    StudyConfig
        The validated configuration.

    Raises
    ------
    ConfigError
        If the file cannot be read, or keys or values are invalid; lists all of them.

    Examples
    --------
    >>> load_config("digits-smr", {"cv.outer": 4}).cv.outer
    4
    >>> load_config("digits-smr", ["cv.outer=4"]).cv.outer
    4
    """
    raw, origin = read_raw(source.to_dict() if isinstance(source, StudyConfig) else source, overrides)
    if raw.get("compare") is not None:
        raise ConfigError(
            f"{origin}: `compare` makes this the configuration of a comparison, not of one study; use run_comparison."
        )
    return config_from_dict(raw, origin)


def read_raw(
    source: str | Path | Mapping[str, Any], overrides: Mapping[str, Any] | Iterable[str] = ()
) -> tuple[dict[str, Any], str]:
    """Read and override a configuration of a study or of a comparison, without validating it.

    Parameters
    ----------
    source : str, Path or mapping
        Path of a YAML file, name of a built-in study or comparison, or a configuration as plain data.
    overrides : mapping of str to object, or iterable of str, default=()
        Values that replace those of the configuration, as for `load_config`.

    Returns
    -------
    raw : dict of str to object
        The configuration as plain data.
    origin : str
        Origin of the configuration, e.g. a path, for error messages.

    Raises
    ------
    ConfigError
        If the file cannot be read, or is not a mapping, or an override has no such form.
    """
    if isinstance(source, Mapping):
        raw, origin = _plain(source), "configuration"
    elif isinstance(source, str | Path):
        raw, origin = parse_yaml(_read(Path(source)), str(source)), str(source)
    else:
        raise ConfigError(f"{source!r} is not a configuration; give a path, the name of a built-in study or a mapping.")
    if not isinstance(raw, dict):
        raise ConfigError(f"{origin} holds no configuration; give keys such as name, dataset and solver.")
    if isinstance(overrides, Mapping):
        for key, value in overrides.items():
            set_key(raw, key, _plain(value), f"override {key}")
    else:
        for text in [overrides] if isinstance(overrides, str) else overrides or ():
            if not isinstance(text, str):
                raise ConfigError(f"override {text!r}: give strings such as 'cv.outer=5', or one mapping.")
            key, value = _parse_override(text)
            set_key(raw, key, value, f"override {text}")
    return raw, origin


def config_from_dict(raw: Mapping[str, Any], origin: str = "configuration") -> StudyConfig:
    """Validate a configuration given as plain data.

    Parameters
    ----------
    raw : mapping of str to object
        The configuration; keys whose value is None are ignored.
    origin : str, default="configuration"
        Origin of the configuration, e.g. a path, for error messages.

    Returns
    -------
    StudyConfig
        The validated configuration.

    Raises
    ------
    ConfigError
        If keys or values are invalid; lists all of them.
    """
    try:
        return StudyConfig.model_validate(without_null(raw))
    except ValidationError as error:
        raise ConfigError("\n  ".join([f"{origin}:", *explain(error)])) from error


def dump_config(config: PlainData) -> str:
    """Return a configuration as YAML that `load_config` or `load_comparison` reads back.

    Parameters
    ----------
    config : StudyConfig or ComparisonConfig
        Configuration to write.

    Returns
    -------
    str
        YAML text.
    """
    return dump_yaml(config.to_dict())


def _read(path: Path) -> str:
    """Return the text of a file, or of the built-in study of this name."""
    builtin, name = builtin_configs(), path.name.removesuffix(".yaml")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} cannot be read: it is not UTF-8 text; give the YAML file of a study.") from error
    except (FileNotFoundError, IsADirectoryError) as error:
        if name in builtin and path.parent in (Path(), Path("conf")):
            return builtin[name].read_text(encoding="utf-8")
        near = difflib.get_close_matches(name, builtin, 1)
        hint = f" Did you mean `{near[0]}`?" if near else ""
        place = f"{path}, which is a directory" if isinstance(error, IsADirectoryError) else path
        raise ConfigError(f"no configuration at {place}.{hint} Built-in studies: {', '.join(builtin)}.") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


def _plain(value: Any) -> Any:
    """Turn arrays, tuples, ranges, numbers of NumPy and paths into the lists, numbers and strings of YAML."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple | range):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _parse_override(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"override {text}: an override must have the form key=value, e.g. cv.outer=5")
    return key, parse_yaml(value, f"override {text if len(text) < 80 else f'{text[:77]}...'}")


def set_key(raw: dict[str, Any], key: str, value: Any, origin: str) -> None:
    """Set a key of a configuration that is given as plain data.

    Parameters
    ----------
    raw : dict of str to object
        The configuration, which is changed.
    key : str
        Dotted key; ``compare.<label>.<key>`` is a key of a member of a comparison, whose label may contain dots.
    value : object
        Value to set.
    origin : str
        Origin of the value, for error messages.

    Raises
    ------
    ConfigError
        If the key is empty, or lies below a value that is not a section.
    """
    parts = _parts(raw, str(key).strip())
    if not all(parts):
        raise ConfigError(f"{origin}: {key!r} is not a key; write it with dots, e.g. cv.outer")
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


def without_null(raw: Any) -> Any:
    """Return plain data without the keys whose value is None.

    Parameters
    ----------
    raw : object
        Mapping, whose nested mappings are treated alike; other values are returned as they are.

    Returns
    -------
    object
        Copy of the mapping.

    Examples
    --------
    >>> without_null({"a": None, "b": {"c": None, "d": 1}})
    {'b': {'d': 1}}
    """
    if isinstance(raw, Mapping):
        return {key: without_null(value) for key, value in raw.items() if value is not None}
    return raw
