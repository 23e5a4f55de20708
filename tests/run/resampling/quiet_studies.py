"""Finished studies on few samples, computed in this process without MLflow."""

from __future__ import annotations

from small_studies import run_offline


def run_quietly(raw, folder):
    """Run a study and return its directory."""
    return run_offline(raw, folder).path
