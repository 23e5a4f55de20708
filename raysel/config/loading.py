"""Configurations read from files and mappings, overridden and validated."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from pydantic import ValidationError

from raysel.config.comparison import ComparisonConfig, refusals, unusable
from raysel.config.keys import explain
from raysel.config.plain_data import (
    MOST_CHARACTERS,
    apply_overrides,
    dump_yaml,
    parse_yaml,
    plain,
    with_new_names,
    without_null,
)
from raysel.config.schema import StudyConfig
from raysel.core.credentials import keep_all_credentials
from raysel.core.errors import ConfigError, suggestion

#: Where a configuration comes from: a file or the name of a built-in one, plain data, or one that
#: is read already.
Source: TypeAlias = str | Path | Mapping[str, Any] | StudyConfig | ComparisonConfig
Overrides: TypeAlias = Mapping[str, Any] | Iterable[str]
#: Either kind of configuration, where the same one is returned.
ConfigT = TypeVar("ConfigT", StudyConfig, ComparisonConfig)

_IS_COMPARISON = (
    "`compare` makes this the configuration of a comparison, not of one study; use run_comparison."
)
_IS_STUDY = "`compare`, which names the members of a comparison, is missing; use run_study."


def builtin_configs() -> dict[str, Path]:
    """Return the configurations of the built-in studies."""
    package = Path(__file__).resolve().parent.parent
    # Inside the package if it is installed, beside it in a checkout.
    for folder in (package / "conf", package.parent / "conf"):
        if folder.is_dir():
            return {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    return {}


def load_config(
    source: Source, overrides: Overrides = (), *, own_data: bool = False
) -> StudyConfig:
    """Read, override and validate a study's configuration."""
    raw, origin = read_raw(source, overrides, own_data=own_data)
    if raw.get("compare") is not None:
        raise ConfigError(f"{origin}: {_IS_COMPARISON}")
    return config_from_dict(raw, origin)


def load_comparison(
    source: Source, overrides: Overrides = (), *, own_data: bool = False
) -> ComparisonConfig:
    """Read, override and validate the configuration of a comparison and of each of its members."""
    raw, origin = read_raw(source, overrides, own_data=own_data)
    if raw.get("compare") is None:
        raise ConfigError(f"{origin}: {_IS_STUDY}")
    return _comparison_from_dict(raw, origin, source)


def is_comparison(source: Source, overrides: Overrides = ()) -> bool:
    """Return whether a configuration is that of a comparison, which has the key ``compare``."""
    return read_raw(source, overrides)[0].get("compare") is not None


def read_raw(
    source: Source, overrides: Overrides = (), *, own_data: bool = False
) -> tuple[dict[str, Any], str]:
    """Read and override a configuration of a study or of a comparison, without validating it."""
    if isinstance(source, StudyConfig | ComparisonConfig):
        source = source.to_dict()
    if isinstance(source, Mapping):
        raw, origin = plain(source), "configuration"
    elif isinstance(source, str | Path):
        raw, origin = _parsed(Path(source)), str(source)
    else:
        raise ConfigError(
            f"{source!r} is not a configuration; give a path, the name of a built-in study or a"
            " mapping."
        )
    if not isinstance(raw, dict):
        raise ConfigError(
            f"{origin} holds no configuration; give keys such as name, dataset and solver."
        )
    raw = with_new_names(raw)
    apply_overrides(raw, overrides, origin, own_data=own_data, builtin=_is_builtin(source))
    return keep_all_credentials(raw), origin


def names_data(source: Source, overrides: Overrides = ()) -> bool:
    """Return whether a configuration names a data file or tasks."""
    section = read_raw({} if _is_builtin(source) else source, overrides)[0].get("dataset")
    return isinstance(section, dict) and any(
        section.get(key) is not None for key in ("path", "tasks")
    )


def config_from_dict(raw: Mapping[str, Any], origin: str = "configuration") -> StudyConfig:
    """Validate a configuration given as plain data."""
    try:
        return StudyConfig.model_validate(without_null(raw))
    except ValidationError as error:
        raise ConfigError("\n  ".join([f"{origin}:", *explain(error)])) from error


def _comparison_from_dict(raw: dict[str, Any], origin: str, source: Source) -> ComparisonConfig:
    members = raw.pop("compare")
    raw = without_null(raw)
    lines: list[str] = []
    if isinstance(members, dict):
        lines = list(unusable(members, lambda: read_raw(source)[0].get("compare")))
        members = {label: keys for label, keys in members.items() if keys is not None}
        raw.setdefault("reference", next(iter(members), None))
    if not lines:
        try:
            config = ComparisonConfig.model_validate(raw | {"compare": members})
            lines = list(refusals(config)) or _invalid(config)
        except ValidationError as error:
            lines = explain(error)
    if lines:
        raise ConfigError("\n  ".join([f"{origin}:", *lines]))
    return config


def _invalid(config: ComparisonConfig) -> list[str]:
    """Explain the invalid keys of all members, common ones once."""
    lines: dict[str, list[str]] = {}
    for label in config.compare:
        try:
            config.member(label)
            lines[label] = []
        except ValidationError as error:
            lines[label] = explain(error)
        except ConfigError as error:  # a key below one that is not a section
            lines[label] = [str(error)]
    first, *others = lines.values()
    shared = [
        line
        for line in first
        if all(line in other for other in others) and not line.startswith("solver")
    ]
    own = []
    for label, said in lines.items():
        own += [f"compare.{label}.{line}" for line in said if line not in shared]
    return shared + own


def dump_config(config: StudyConfig | ComparisonConfig) -> str:
    """Return a configuration as YAML that `load_config` or `load_comparison` reads back."""
    return dump_yaml(config.to_dict())


def _is_builtin(source: object) -> bool:
    """Return whether a source of a configuration is the name of a built-in one."""
    return isinstance(source, str | Path) and not Path(source).is_file()


def _parsed(path: Path) -> Any:
    """Return the content of a YAML file; of data, say which command takes them."""
    # Unlike Path's, this `exists` is False of a name that is too long.
    if not os.path.exists(path) or path.suffix.lower() in (".yaml", ".yml"):  # noqa: PTH110
        return parse_yaml(_read(path), str(path))
    try:
        raw = parse_yaml(_read(path), str(path))
    except ConfigError as error:
        if isinstance(error.__cause__, OSError) and not path.is_dir():
            raise
        raise ConfigError(_data_hint(path)) from error
    if not isinstance(raw, dict):
        raise ConfigError(_data_hint(path))
    return raw


def _data_hint(path: Path) -> str:
    """Say what to do with a file or folder that is no configuration."""
    name = shlex.quote(str(path))
    if (path / "config.yaml").exists():
        return f"{path} is the directory of a study; to resume it: raysel tune --resume {name}"
    return f"{path} is no study's YAML file; to write a study for data: raysel init {name}"


def _read(path: Path) -> str:
    """Return the text of a file, or of the built-in study of this name."""
    builtin, name = builtin_configs(), path.name.removesuffix(".yaml")
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(
                MOST_CHARACTERS + 1
            )  # which is refused with one character more than the limit
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path} cannot be read: it is not UTF-8 text; give the YAML file of a study."
        ) from error
    except (FileNotFoundError, IsADirectoryError) as error:
        if name in builtin and path.parent in (Path(), Path("conf")):
            return builtin[name].read_text(encoding="utf-8")
        hint = suggestion(name, builtin, "")
        hint = f" {hint[0].upper()}{hint[1:]}" if hint else ""
        place = f"{path}, which is a directory" if isinstance(error, IsADirectoryError) else path
        raise ConfigError(
            f"no configuration at {place}.{hint} Built-in studies: {', '.join(builtin)}."
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
