"""Tables of a study that has been run: python experiments/examples/read_study.py STUDY_DIR"""

from __future__ import annotations

import sys

from raysel import open_study


def main(path: str) -> None:
    """Show the best configurations, how the fits converged, and how stable the selected features
    are.
    """
    study = open_study(path)
    print(study, end="\n\n")

    trials = study.trials()  # one row a configuration, the best first
    print("Best configurations")
    print(
        trials.filter(regex="^param_|^status$|^val_[a-z]+$|^converged$")
        .head(5)
        .to_string(index=False)
    )

    traces = study.traces()  # one row an iteration of an inner fit
    last = traces.groupby(["configuration", "fold", "inner"])["iteration"].max()
    print("\nIterations of the inner fits")
    print(last.groupby("configuration").agg(["mean", "max"]).round(1).to_string())

    print("\nStability of the selected features over the outer folds, by their number")
    for top in (4, 8, 16):
        print(f"{top:4} features: {study.ranking(top).stability}")

    table = study.ranking(top=8).to_frame()  # one row a feature
    always = table.loc[table["selection_frequency"] == 1, "feature"]
    print(f"\nSelected in every outer fold: {', '.join(always)}")
    for remark in study.remarks():
        print(f"\n{remark}")


if __name__ == "__main__":
    main(sys.argv[1])
