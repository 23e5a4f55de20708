"""Reading of configurations: YAML, overrides, and errors with the key or line and a remedy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import ValidationError

from raysel.config.explaining import explain
from raysel.config.schema import StudyConfig
from raysel.errors import ConfigError

if TYPE_CHECKING:
    from raysel.config.comparison import ComparisonConfig

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class _Loader(yaml.SafeLoader):
    """Safe YAML loader that reads 1e-3 as a number and a date as a string; its errors give the line."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):  # nested aliases can expand to more than the memory
            raise ConfigError(f"line {line}: aliases are not allowed; write out the value.")
        if getattr(event, "tag", None):
            raise ConfigError(f"line {line}: tags are not allowed; leave out {event.tag}.")
        return super().compose_node(parent, index)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
        except ConfigError:
            raise
        except ValueError as error:
            shown = str(node.value)[:50]
            raise ConfigError(f"line {node.start_mark.line + 1}: `{shown}` cannot be read as a value.") from error
        if isinstance(value, int) and abs(value) >= 2**63:
            raise ConfigError(f"line {node.start_mark.line + 1}: whole numbers must lie between -2^63 and 2^63.")
        if isinstance(value, str) and _UNPRINTABLE.search(value):
            raise ConfigError(f"line {node.start_mark.line + 1}: {value[:50]!r} has a control character or line break.")
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise ConfigError(
                    f"line {key_node.start_mark.line + 1}: the key {key!r} is not a word; put it in quotes."
                )
            if key in seen:
                raise ConfigError(f"line {key_node.start_mark.line + 1}: the key `{key}` is written twice; keep one.")
            seen.add(key)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Safe YAML dumper that quotes strings which `_Loader` would read as numbers, e.g. "1e5"."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _class in (_Loader, _Dumper):
    _class.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"^[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
        list("-+.0123456789"),
    )


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
        raw, origin = _parse(_read(Path(source)), str(source)), str(source)
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


def dump_config(config: StudyConfig | ComparisonConfig) -> str:
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
    return yaml.dump(
        config.to_dict(), Dumper=_Dumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=120
    )


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


def _parse(text: str, origin: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise ConfigError(f"{origin}{line}: this is not valid YAML: {what}.") from error
    except ConfigError as error:
        raise ConfigError(f"{origin}, {error}") from None
    except RecursionError as error:
        raise ConfigError(f"{origin}: the YAML is nested too deeply; a configuration has a few levels.") from error


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
    return key, _parse(value, f"override {text if len(text) < 80 else f'{text[:77]}...'}")


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
