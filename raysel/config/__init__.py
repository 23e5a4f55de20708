"""The configuration of a study: schema, spaces, loading, overrides and hash."""

from raysel.config.loading import builtin_configs, config_from_dict, dump_config, load_config
from raysel.config.schema import StudyConfig

__all__ = ["StudyConfig", "builtin_configs", "config_from_dict", "dump_config", "load_config"]
