"""Text of a study's answer: all that shows a figure takes its sentences and rows from here."""

from raysel.results.trust import overlap_in_words, stability_in_short, stability_in_words
from raysel.results.words.answer import (
    classifier_in_words,
    headline,
    interval_footnote,
    interval_name,
    n_features_in_words,
    report_in_words,
    rule_in_words,
    rule_sentence,
    score_in_words,
    shows_n_features,
    tasks_in_words,
)
from raysel.results.words.asked import blocks_in_words, data_facts, data_name, layout_in_words, method_facts
from raysel.results.words.convergence import convergence_in_words, other_start_sentence
from raysel.results.words.figures import bracketed_difference, difference_in_words, listed, mean_and_sd, values_in_words
from raysel.results.words.ranking import best_features_in_words, modalities_in_words, redundancy_in_words
from raysel.results.words.references import (
    missing_references_sentence,
    reference_in_words,
    reference_sentences,
    references_line,
    short_reference,
    verdict_in_short,
    verdict_sentences,
)
from raysel.results.words.rows import ScoreRow, curve_rows, optimism_rows, optimism_sentence, score_rows

__all__ = [
    "ScoreRow",
    "best_features_in_words",
    "blocks_in_words",
    "bracketed_difference",
    "classifier_in_words",
    "convergence_in_words",
    "curve_rows",
    "data_facts",
    "data_name",
    "difference_in_words",
    "headline",
    "interval_footnote",
    "interval_name",
    "layout_in_words",
    "listed",
    "mean_and_sd",
    "method_facts",
    "missing_references_sentence",
    "modalities_in_words",
    "n_features_in_words",
    "optimism_rows",
    "optimism_sentence",
    "other_start_sentence",
    "overlap_in_words",
    "redundancy_in_words",
    "reference_in_words",
    "reference_sentences",
    "references_line",
    "report_in_words",
    "rule_in_words",
    "rule_sentence",
    "score_in_words",
    "score_rows",
    "short_reference",
    "shows_n_features",
    "stability_in_short",
    "stability_in_words",
    "tasks_in_words",
    "values_in_words",
    "verdict_in_short",
    "verdict_sentences",
]
