"""The configuration of a study or a comparison: schema, spaces, loading, overrides and hash."""

from raysel.config.comparison import ComparisonConfig, member_folders
from raysel.config.loading import (
    builtin_configs,
    config_from_dict,
    dump_config,
    is_comparison,
    load_comparison,
    load_config,
    names_data,
)
from raysel.config.schema import StudyConfig

__all__ = [
    "ComparisonConfig",
    "StudyConfig",
    "builtin_configs",
    "config_from_dict",
    "dump_config",
    "is_comparison",
    "load_comparison",
    "load_config",
    "member_folders",
    "names_data",
]
