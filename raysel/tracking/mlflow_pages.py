"""Addresses of MLflow's pages, relative to the address of its server."""

from __future__ import annotations

#: Asks for the pages for training runs; MLflow opens those for language models, on which they are missing, by default.
_PAGES = "workflowType=machine_learning"


def runs_page(experiment_id: str, view: str = "", *, charts: bool = False) -> str:
    """Return the address of an experiment's table of training runs, or of its charts."""
    shared = f"viewStateShareKey={view}&" if view else ""
    mode = "&compareRunsMode=CHART" if charts else ""
    return f"/#/experiments/{experiment_id}/runs?{shared}{_PAGES}{mode}"


def run_page(experiment_id: str, run_id: str, artifact: str = "") -> str:
    """Return the address of a run, or of one of its artifacts."""
    shown = f"/artifacts/{artifact}" if artifact else ""
    return f"/#/experiments/{experiment_id}/runs/{run_id}{shown}?{_PAGES}"
