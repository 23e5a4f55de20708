"""The words of reports, commands and the guide, each with its meaning in one sentence."""

from typing import Final

#: Meaning of each term, in the order in which a study comes to it.
TERMS: Final = {
    "configuration": "One setting of the method's parameters.",
    "outer fold": (
        "A division of the samples into a training and a test set; the test sets give the score."
    ),
    "inner fold": (
        "A division of an outer fold's training set, by which configuration and number of features"
        " are chosen."
    ),
    "trial": (
        "The fits of one configuration on the inner folds; their mean score is the inner score,"
        " val_ in MLflow."
    ),
    "winner": (
        "The configuration with the best inner score on an outer fold; it is fitted again and"
        " tested once."
    ),
    "final model": "The winner on all samples, fitted to all of them; model.skops holds it.",
    "reference": (
        "What the score is compared with on the same folds: all features, plain rankings,"
        " confounds alone, chance."
    ),
    "chance": "The score of the best guess that reads no feature.",
    "consensus": "The order of the features by their median rank over the outer folds.",
    "stability": (
        "How alike the outer folds select: 1 if the same features, 0 on average at random; noise is"
        " that of permuted labels."
    ),
    "claim": (
        "A statement on features beyond these samples, with a bound on its error; raysel claims,"
        " stability and permute make it."
    ),
    "remark": "A limitation of the result, with what to do about it.",
}
