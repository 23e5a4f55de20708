"""The design of R's nestedcv: a forked process searches and tests each outer fold, and then
comes the model.
"""

from __future__ import annotations

from multiprocessing import get_context

from task import VALUES, inner_score, refit, tell, training_sets


def nested(pair):
    """Search one training set, and score what was chosen."""
    train, test = pair
    return refit(train, test, [inner_score(train, C) for C in VALUES])


if __name__ == "__main__":
    with get_context("fork").Pool(2) as pool:
        *scores, _ = pool.map(nested, training_sets(), chunksize=1)
    tell(scores)
