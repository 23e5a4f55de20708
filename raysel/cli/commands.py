"""The commands and their options; nothing heavy is imported, so that ``--help`` answers at once."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from dataclasses import dataclass

#: Study that ``tune`` runs by default.
BUILTIN = "planted-genes"
#: Folder that ``compare`` writes several comparisons to by default.
JOINED = "raysel-comparison"

_INIT_EXAMPLES = """\
examples:
  raysel init table.csv                      writes table-study.yaml
  raysel init table.csv --label diagnosis    the labels are in the column diagnosis
  raysel init faces.mat -o faces.yaml
  raysel init images/                        a folder with one folder of images for each class
  raysel init X.npy --labels y.npy
"""
_SELECT_EXAMPLES = """\
examples:
  raysel select                            the newest study, with the number of features it chose
  raysel select STUDY_DIR --top 50         the best 50, in STUDY_DIR/selection-top50
  raysel select STUDY_DIR --consensus      by the consensus of the outer folds
  raysel select STUDY_DIR --fold outer0    as the winner of an outer fold ranks them
  raysel select STUDY_DIR --names | head   only the names of the first features, one a line
  raysel select STUDY_DIR --mask mask.npy  a mask in the shape of a sample as well
  raysel select STUDY_DIR --format json,npz --output out
"""


@dataclass(frozen=True)
class Command:
    """One command: what its help says, its options, and the function that does its work."""

    #: Line of the command in ``raysel --help``.
    summary: str
    add_options: Callable[[ArgumentParser], None]
    #: Module of `raysel.cli` and function in it, which takes the parsed arguments and returns the
    #: exit status.
    work: str
    #: Description in the command's own help; by default the summary.
    description: str = ""
    examples: str = ""
    #: Whether an error while it computes ends it with status 1; status 2 means that it cannot do
    #: what is asked.
    computes: bool = False
    #: What is printed before the libraries are imported, which takes seconds.
    first_line: Callable[[Namespace], str] | None = None

    def fill(self, parser: ArgumentParser) -> None:
        """Give a parser the description and the options of the command."""
        parser.description = self.description or f"{self.summary[0].upper()}{self.summary[1:]}."
        if self.examples:
            parser.epilog, parser.formatter_class = self.examples, RawDescriptionHelpFormatter
        self.add_options(parser)


def _tune(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "config",
        nargs="?",
        help=f"a YAML file, or a built-in study or comparison, see --list (default: {BUILTIN})",
    )
    _add_set(parser, "override a key of the configuration")
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--output",
        metavar="DIR",
        help=(
            "directory or URI to write (default: raysel-studies/NAME-TIME); the runs go to MLflow's"
            " store, by default mlflow.db in the working directory"
        ),
    )
    place.add_argument(
        "--resume",
        metavar="DIR",
        help="resume the study or comparison in this directory or at this URI",
    )
    place.add_argument(
        "--replay", metavar="DIR", help="upload this study or comparison to MLflow again"
    )
    _add_cluster(parser)
    add(
        "--dry-run",
        action="store_true",
        help=(
            "check everything, print data and plan as understood, and start nothing; with --output,"
            " draw the data"
        ),
    )
    add(
        "--list",
        action="store_const",
        const="",
        help="print the built-in studies and comparisons and exit",
    )
    text = "print all keys of the configuration, or of a section; exit"
    add("--help-config", nargs="?", const="", metavar="SECTION", help=text)
    text = "print all methods, or one with its parameters explained; exit"
    add("--list-solvers", nargs="?", const="", metavar="NAME", help=text)
    add(
        "--verbose",
        action="store_true",
        help="print all tables, figures and remarks of the result, as in report.html",
    )
    _add_trust_key(parser)
    _add_quiet(parser)


def _init(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "file",
        metavar="FILE",
        help="data file or folder, its URI, or the name of one of scikit-learn's data sets",
    )
    add(
        "--label",
        metavar="NAME",
        help="column or array of the labels (default: recognised by its name or values)",
    )
    add("--labels", metavar="FILE", help="file of the labels, where FILE holds the samples only")
    add(
        "--mask",
        metavar="FILE",
        help="mask of the volumes, where FILE is a table of NIfTI files (default: beside it)",
    )
    add(
        "-o",
        "--output",
        metavar="STUDY.yaml",
        help="file to write (default: <name of FILE>-study.yaml, here)",
    )


def _select(parser: ArgumentParser) -> None:
    _add_newest_study(parser)
    add = parser.add_argument
    add(
        "--top",
        type=int,
        metavar="N",
        help="number of features that count as selected (default: the chosen one)",
    )
    add(
        "--consensus",
        action="store_true",
        help="rank by the consensus of the outer folds, not by the final model",
    )
    add(
        "--fold",
        metavar="NAME",
        help="rank by the winner of this fold, e.g. outer0, not by the final model",
    )
    add(
        "--names",
        action="store_true",
        help="only print the names of the first N features of the table, one a line",
    )
    add(
        "--mask",
        metavar="FILE",
        help=(
            "also write a mask of the selected features in the shape of a sample, *.npy or *.nii.gz"
            " (needs nibabel); no other file is replaced"
        ),
    )
    add(
        "--format",
        action="append",
        metavar="FORMAT",
        help=(
            "format of the table: csv, parquet, json, npz; several by commas or repeated (default:"
            " csv,parquet)"
        ),
    )
    add(
        "--output",
        metavar="DIR",
        help=(
            "folder to write to, where files of the same names are replaced (default:"
            " STUDY_DIR/selection-topN, with -consensus or the fold's name, where no different file"
            " is replaced)"
        ),
    )
    _add_trust_key(parser)


def _report(parser: ArgumentParser) -> None:
    _add_newest_study(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="file to write (default: STUDY_DIR/report.html)"
    )
    _add_trust_key(parser)


def _compare(parser: ArgumentParser) -> None:
    text = "directory or URI of a study with the key `compare`"
    parser.add_argument("comparison", nargs="+", metavar="DIR", help=text)
    text = (
        f"folder to write to (default: the comparison's folder `comparison`; `{JOINED}` for"
        " several)"
    )
    parser.add_argument("--output", metavar="DIR", help=text)


def _stability(parser: ArgumentParser) -> None:
    _add_finished_study(parser)
    add = parser.add_argument
    add(
        "--subsamples",
        type=int,
        default=100,
        metavar="N",
        help="number of halves, two for each pair (default: 100)",
    )
    text = (
        "number of features that a half selects (default: that of the final model, or the largest"
        " that bounds the false ones by 1)"
    )
    add("--top", type=int, metavar="N", help=text)
    text = (
        "selection probability of the set, above 0.5 (default: the smallest whose unimodal bound is"
        " at most 1)"
    )
    add("--threshold", type=float, metavar="T", help=text)
    _add_resampling(parser)


def _permute(parser: ArgumentParser) -> None:
    _add_finished_study(parser)
    add = parser.add_argument
    add("--permutations", type=int, default=200, metavar="N", help="number of them (default: 200)")
    add(
        "--retune",
        action="store_true",
        help="repeat the whole search for each permutation, which makes p exact",
    )
    add(
        "--seed",
        type=int,
        metavar="S",
        help="seed of the permutations (default: that of the study)",
    )
    _add_resampling(parser)


def _claims(parser: ArgumentParser) -> None:
    _add_finished_study(parser)
    add = parser.add_argument
    rate = parser.add_mutually_exclusive_group()
    rate.add_argument(
        "--fdr", type=float, metavar="L", help="false discovery rate of the claims (default: 0.1)"
    )
    rate.add_argument(
        "--fwer", type=float, metavar="L", help="probability of any false claim, in place of --fdr"
    )
    text = (
        "absolute correlation from which on features form a group (default: the groups of"
        " dataset.feature_groups, else 0.5)"
    )
    add("--correlated", type=float, metavar="R", help=text)
    text = (
        "number of regions of neighbouring cells, of images and volumes (default: by the numbers of"
        " samples and cells; 0: single features or groups)"
    )
    add("--regions", type=int, metavar="N", help=text)
    text = (
        "how features are tested: by lassos, or by predictions of held-out samples (default:"
        " held-out where the models have no coefficients, else covariance)"
    )
    add("--method", choices=("covariance", "desparsified", "held-out"), help=text)
    _add_resampling(parser)


def _audit(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "file",
        metavar="FILE",
        help=(
            "study (.yaml), data file or folder, its URI, or the name of one of scikit-learn's data"
            " sets"
        ),
    )
    add(
        "--label",
        metavar="NAME",
        help="column or array of the labels (default: recognised by its name or values)",
    )
    add("--labels", metavar="FILE", help="file of the labels, where FILE holds the samples only")
    add(
        "--groups",
        metavar="NAME",
        help="column or array with the group of each sample, e.g. its subject",
    )
    add(
        "--drop",
        action="append",
        default=[],
        metavar="NAME",
        help="column that is no feature; may be repeated",
    )
    add(
        "--metric",
        metavar="NAME",
        help="metric, larger is better (default: the one that raysel init drafts)",
    )
    add(
        "--permutations",
        type=int,
        default=5,
        metavar="N",
        help="number of permutations of the labels (default: 5)",
    )
    add(
        "--processes",
        type=int,
        default=1,
        metavar="N",
        help="number of processes (default: 1); -1: all processors",
    )
    add(
        "-o",
        "--output",
        metavar="FILE",
        help="also write the picture, *.png, *.svg or *.pdf, or the table, *.csv",
    )


def _upload(parser: ArgumentParser) -> None:
    parser.add_argument("directory", metavar="STUDY_DIR", help="directory to copy")
    parser.add_argument(
        "uri",
        metavar="URI",
        help="folder to write: s3://BUCKET/KEY, gs://BUCKET/KEY or file:///PATH",
    )


def _trust(parser: ArgumentParser) -> None:
    text = "directory or URI of a study or comparison, or a model file"
    parser.add_argument("study", metavar="STUDY_DIR", help=text)


def _add_trust_key(parser: ArgumentParser) -> None:
    text = "also trust models signed by this key, e.g. a lab's (default: RAYSEL_TRUST_KEY)"
    parser.add_argument("--trust-key", metavar="FILE", help=text)


def _add_newest_study(parser: ArgumentParser) -> None:
    text = "directory or URI (default: the newest below this directory)"
    parser.add_argument("study", nargs="?", metavar="STUDY_DIR", help=text)


def _add_finished_study(parser: ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY_DIR", help="directory or URI of a finished study")


def _add_set(parser: ArgumentParser, text: str) -> None:
    parser.add_argument("--set", action="append", default=[], metavar="A.B=VALUE", help=text)


def _add_quiet(parser: ArgumentParser) -> None:
    text = "print only the study's directory, once it has finished, and errors"
    parser.add_argument("--quiet", action="store_true", help=text)


def _add_cluster(parser: ArgumentParser) -> None:
    """Add the options that say where Ray runs."""
    parser.add_argument(
        "--address",
        metavar="RAY_ADDRESS",
        help="join this Ray cluster instead of starting Ray here",
    )
    text = (
        "use nodes of the cluster whose versions may change the last bits of numbers; it is"
        " recorded"
    )
    parser.add_argument("--allow-mixed-versions", action="store_true", help=text)


def _add_resampling(parser: ArgumentParser) -> None:
    """Add the options of what is computed again for a finished study."""
    parser.add_argument(
        "--executor", choices=["serial", "ray"], help="where to compute (default: as the study)"
    )
    _add_cluster(parser)
    parser.add_argument(
        "--config", metavar="FILE", help="the study's configuration, if its solver imports code"
    )
    _add_set(parser, "override a key, e.g. dataset.path=moved.npz")
    _add_quiet(parser)


def _loading(arguments: Namespace) -> str:
    """Say that a study is loaded; nothing where none runs."""
    described = (arguments.list, arguments.help_config, arguments.list_solvers, arguments.replay)
    if arguments.quiet or arguments.dry_run or any(one is not None for one in described):
        return ""
    return f"{arguments.config or arguments.resume or BUILTIN}: loading libraries and data"


COMMANDS = {
    "tune": Command(
        "run a study, or several that are compared",
        _tune,
        "tune:run",
        "Run a study: a nested search over solver configurations, tracked and ranked; or several"
        " studies that are compared.",
        computes=True,
        first_line=_loading,
    ),
    "init": Command(
        "look at a data file and write a commented study that fits it",
        _init,
        "study_files:init",
        examples=_INIT_EXAMPLES,
    ),
    "select": Command(
        "export the ranking of a finished study, and the features that it selects",
        _select,
        "select:run",
        examples=_SELECT_EXAMPLES,
    ),
    "report": Command(
        "write the report of a study or of a comparison: one HTML file",
        _report,
        "study_files:report",
        "Write the report of a finished study or of a comparison: one HTML file that needs no"
        " network.",
    ),
    "compare": Command(
        "print a comparison again, or join those of several data sets",
        _compare,
        "compare:run",
        "Print a comparison again and write its files, or join the comparisons of several data"
        " sets: mean ranks, Friedman's test and Nemenyi's critical difference.",
    ),
    "stability": Command(
        "stability selection: how often each feature is selected on half of the data",
        _stability,
        "resampling:stability",
        "Stability selection (Shah & Samworth 2013) of a finished study's winning configuration:"
        " how often each feature is selected on halves. Halves are of the samples, of groups or of"
        " blocks. It gives a set of features with a bound on how many of them are false. An"
        " interrupted run continues where it stopped.",
        computes=True,
    ),
    "permute": Command(
        "test a finished study by permuted labels: p values",
        _permute,
        "resampling:permute",
        "Test a finished study by permuted labels: p value of its honest score, and of each"
        " feature's score. Those of filters that rate each feature alone claim single features."
        " Permutations that were computed before are used again.",
        computes=True,
    ),
    "claims": Command(
        "claim features of a finished study at a false discovery rate",
        _claims,
        "resampling:claims",
        "Claim features that tell the label beside all others, with a bound on false claims."
        " Strongly correlated features are claimed as one group, of images and volumes regions of"
        " neighbouring cells. The tests use all samples of the study, and nothing that was chosen on"
        " them.",
        computes=True,
    ),
    "audit": Command(
        "compare careless with honest scores of a study or on a data file, and both on permuted"
        " labels",
        _audit,
        "audit:run",
        "Compare careless use (preparation, selection and tuning on all data, the best kept) with"
        " nested cross-validation, also on permuted labels. FILE is a study, or data. Data are"
        " prepared as raysel init drafts; the method is the F-test with a linear SVM, or with ridge"
        " for a quantity.",
        computes=True,
    ),
    "trust": Command(
        "trust the models of a study that another account, or an older version, has written",
        _trust,
        "trust:run",
        "Show a study of another account or of an older version, and sign its models with this"
        " account's key. All commands use signed models. Sign only models of people that you"
        " trust: another one may crash the process that predicts with it, or read its memory.",
    ),
    "upload": Command(
        "copy the directory of a study or of a comparison to a URI",
        _upload,
        "study_files:upload",
        "Copy the directory of a study or of a comparison to a URI, e.g. because the store could"
        " not be written while the study ran.",
    ),
}
