"""Addresses of MLflow's pages, relative to the address of its server."""

from __future__ import annotations

#: Asks for the pages for training runs; MLflow opens those for language models, on which they are missing, by default.
_PAGES = "workflowType=machine_learning"


def runs_page(experiment_id: str, view: str = "", *, charts: bool = False) -> str:
    """Return the address of an experiment's table of training runs, or of its charts.

    Parameters
    ----------
    experiment_id : str
        Id of the MLflow experiment.
    view : str, default=""
        Key of the shared view to open, which selects runs, columns and order; by default there is none. The address
        names no order of its own, because MLflow then ignores the view.
    charts : bool, default=False
        Whether the page opens with the charts instead of the table.

    Returns
    -------
    str
        Address that begins with ``/#/``.

    Examples
    --------
    >>> runs_page("1", "abc")
    '/#/experiments/1/runs?viewStateShareKey=abc&workflowType=machine_learning'
    """
    shared = f"viewStateShareKey={view}&" if view else ""
    mode = "&compareRunsMode=CHART" if charts else ""
    return f"/#/experiments/{experiment_id}/runs?{shared}{_PAGES}{mode}"


def run_page(experiment_id: str, run_id: str, artifact: str = "") -> str:
    """Return the address of a run, or of one of its artifacts.

    Parameters
    ----------
    experiment_id : str
        Id of the MLflow experiment.
    run_id : str
        Id of the run.
    artifact : str, default=""
        Path of the artifact within the run; by default the page is the run's overview.

    Returns
    -------
    str
        Address that begins with ``/#/``.

    Examples
    --------
    >>> run_page("1", "a2", "report.html")
    '/#/experiments/1/runs/a2/artifacts/report.html?workflowType=machine_learning'
    """
    shown = f"/artifacts/{artifact}" if artifact else ""
    return f"/#/experiments/{experiment_id}/runs/{run_id}{shown}?{_PAGES}"
