"""Classes and functions of scikit-learn that a model file may hold, and the shapes of their fitted attributes.

The shapes are written as in `raysel.base.model_files.shapes`. Files with other classes are refused: the compiled code
of some of them does not check its arrays.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Mapping
from typing import Any

_CLASSES = {"classes_": "n_classes"}
_OUTPUTS = {"classes_": "n_classes | n_outputs: c_i"}
_LINEAR = {**_CLASSES, "coef_": "n_problems n_features", "intercept_": "n_problems | scalar"}
_DISCRIMINANT = {"priors_": "n_classes", "means_": "n_classes n_features"}
_SVM = {
    **_CLASSES,
    "class_weight_": "n_classes",
    "support_": "n_support",
    "support_vectors_": "n_support n_features",
    "_n_support": "n_classes",
    "dual_coef_": "n_others n_support",
    "_dual_coef_": "n_others n_support",
    "intercept_": "n_pairs",
    "_intercept_": "n_pairs",
    "_probA": "0 | n_pairs",
    "_probB": "0 | n_pairs",
    "_num_iter": "n_pairs",
}
_COUNTS = {
    **_CLASSES,
    "class_count_": "n_classes",
    "class_log_prior_": "n_classes",
    "feature_count_": "n_classes n_features",
    "feature_log_prob_": "n_classes n_features",
    "feature_all_": "n_features",
}
_FILTER = {"scores_": "n_features", "pvalues_": "n_features | none"}
_SCALER = dict.fromkeys(
    ("scale_", "mean_", "var_", "min_", "data_min_", "data_max_", "data_range_", "max_abs_", "center_"),
    "n_features | none",
)

#: Shapes of the fitted attributes of each class. `raysel.base.models` checks trees.
SKLEARN: Mapping[str, Mapping[str, str]] = {
    "sklearn.calibration.CalibratedClassifierCV": _CLASSES,
    "sklearn.calibration._CalibratedClassifier": {},
    "sklearn.calibration._SigmoidCalibration": {},
    "sklearn.decomposition._pca.PCA": {
        "components_": "n_components n_features",
        "mean_": "n_features",
        "explained_variance_": "n_components",
        "explained_variance_ratio_": "n_components",
        "singular_values_": "n_components",
        "n_components_": "= n_components",
    },
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis": {
        **_LINEAR,
        **_DISCRIMINANT,
        "xbar_": "n_features",
        "scalings_": "n_features n_directions",
        "explained_variance_ratio_": "n_ratios",
        "covariance_": "n_features n_features",
    },
    "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis": {
        **_CLASSES,
        **_DISCRIMINANT,
        "scalings_": "n_classes: d_i",
        "rotations_": "n_classes: n_features d_i",
    },
    "sklearn.dummy.DummyClassifier": {**_OUTPUTS, "class_prior_": "n_classes | n_outputs: c_i"},
    "sklearn.ensemble._bagging.BaggingClassifier": {
        **_CLASSES,
        "n_classes_": "= n_classes",
        "estimators_features_": "n_estimators: d_i",
        "_seeds": "n_estimators",
    },
    "sklearn.ensemble._forest.ExtraTreesClassifier": _OUTPUTS,
    "sklearn.ensemble._forest.RandomForestClassifier": _OUTPUTS,
    "sklearn.ensemble._weight_boosting.AdaBoostClassifier": {
        **_CLASSES,
        "n_classes_": "= n_classes",
        "estimator_weights_": "n_estimators",
        "estimator_errors_": "n_estimators",
    },
    "sklearn.feature_selection._from_model.SelectFromModel": {},
    "sklearn.feature_selection._rfe.RFE": {"support_": "n_features", "ranking_": "n_features"},
    "sklearn.feature_selection._univariate_selection.SelectFdr": _FILTER,
    "sklearn.feature_selection._univariate_selection.SelectFpr": _FILTER,
    "sklearn.feature_selection._univariate_selection.SelectFwe": _FILTER,
    "sklearn.feature_selection._univariate_selection.SelectKBest": _FILTER,
    "sklearn.feature_selection._univariate_selection.SelectPercentile": _FILTER,
    "sklearn.feature_selection._variance_threshold.VarianceThreshold": {"variances_": "n_features"},
    "sklearn.gaussian_process._gpc.GaussianProcessClassifier": _CLASSES,
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace": {
        **_CLASSES,
        "X_train_": "n_samples n_columns",
        "y_train_": "n_samples",
        "f_cached": "n_samples",
        "pi_": "n_samples",
        "W_sr_": "n_samples",
        "L_": "n_samples n_samples",
    },
    "sklearn.gaussian_process.kernels.ConstantKernel": {},
    "sklearn.gaussian_process.kernels.Product": {},
    "sklearn.gaussian_process.kernels.RBF": {},
    "sklearn.linear_model._logistic.LogisticRegression": _LINEAR,
    "sklearn.linear_model._logistic.LogisticRegressionCV": _LINEAR,
    "sklearn.linear_model._ridge.RidgeClassifier": _LINEAR,
    "sklearn.linear_model._ridge.RidgeClassifierCV": _LINEAR,
    "sklearn.multiclass.OneVsOneClassifier": _CLASSES,
    "sklearn.multiclass.OneVsRestClassifier": _CLASSES,
    "sklearn.multiclass._ConstantPredictor": {"y_": "1"},
    "sklearn.naive_bayes.BernoulliNB": _COUNTS,
    "sklearn.naive_bayes.ComplementNB": _COUNTS,
    "sklearn.naive_bayes.GaussianNB": {
        **_CLASSES,
        "theta_": "n_classes n_features",
        "var_": "n_classes n_features",
        "class_count_": "n_classes",
        "class_prior_": "n_classes",
    },
    "sklearn.naive_bayes.MultinomialNB": _COUNTS,
    "sklearn.neighbors._classification.KNeighborsClassifier": {
        **_OUTPUTS,
        "_fit_X": "n_samples n_features",
        "_y": "n_samples | n_samples n_outputs",
        "n_samples_fit_": "= n_samples",
    },
    "sklearn.neighbors._nearest_centroid.NearestCentroid": {
        **_CLASSES,
        "class_prior_": "n_classes",
        "centroids_": "n_classes n_features",
        "deviations_": "n_classes n_features",
        "within_class_std_dev_": "n_features",
    },
    "sklearn.neural_network._multilayer_perceptron.MLPClassifier": {
        **_CLASSES,
        "coefs_": "n_layers: d_i e_i",
        "intercepts_": "n_layers: e_i",
    },
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer": {},
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer": {},
    "sklearn.pipeline.Pipeline": {},
    "sklearn.preprocessing._function_transformer.FunctionTransformer": {},
    "sklearn.preprocessing._data.MaxAbsScaler": _SCALER,
    "sklearn.preprocessing._data.MinMaxScaler": _SCALER,
    "sklearn.preprocessing._data.RobustScaler": _SCALER,
    "sklearn.preprocessing._data.StandardScaler": _SCALER,
    "sklearn.preprocessing._label.LabelBinarizer": _CLASSES,
    "sklearn.svm._classes.LinearSVC": _LINEAR,
    "sklearn.svm._classes.NuSVC": _SVM,
    "sklearn.svm._classes.SVC": _SVM,
    "sklearn.tree._classes.DecisionTreeClassifier": _OUTPUTS,
    "sklearn.tree._classes.ExtraTreeClassifier": _OUTPUTS,
}

#: Functions of scikit-learn that a model file may name.
FUNCTIONS = frozenset(
    {
        "sklearn.feature_selection._mutual_info.mutual_info_classif",
        "sklearn.feature_selection._univariate_selection.chi2",
        "sklearn.feature_selection._univariate_selection.f_classif",
    }
)


#: Former modules of classes in model files, by module or by module and class, and the present ones.
_MOVED: dict[str | tuple[str, str], str] = {
    # 0.1
    ("raysel.solvers.smr", "SMR"): "raysel.solvers.smr.smr",
    ("raysel.solvers.smml", "SMML"): "raysel.solvers.smml.smml",
    ("raysel.solvers.mtda", "MTDA"): "raysel.solvers.mtda.mtda",
    # 0.2 to 0.7
    "raysel.cv.model.nearest": "raysel.evaluation.neighbours",
    "raysel.cv.model.pipeline": "raysel.evaluation.pipeline",
    "raysel.cv.model.selector": "raysel.evaluation.selectors",
    "raysel.data.modality_scaler": "raysel.data.scaling",
    "raysel.data.task_scaler": "raysel.data.scaling",
}
_FORMER_FAMILIES = re.compile(r"raysel\.baselines\.(?:classifiers|embedded|filters|multilabel|projections)\.")
_SCHEMA = "schema.json"


def with_present_names(content: bytes) -> bytes:
    """Replace the modules of moved classes in a model file by their present modules."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            schema = json.loads(file.read(_SCHEMA))
            if not _rename(schema):
                return content
            renamed = io.BytesIO()
            with zipfile.ZipFile(renamed, "w") as copy:
                for item in file.infolist():
                    data = json.dumps(schema).encode() if item.filename == _SCHEMA else file.read(item)
                    copy.writestr(item.filename, data)
    except Exception:  # skops reports the error when it reads the file  # noqa: BLE001
        return content
    return renamed.getvalue()


def _rename(node: Any) -> int:
    """Replace the modules of moved classes in a schema in place; return the number of replacements."""
    if isinstance(node, list):
        return sum(_rename(item) for item in node)
    if not isinstance(node, dict):
        return 0
    count = sum(_rename(value) for value in node.values())
    module, name = node.get("__module__"), node.get("__class__")
    if isinstance(module, str) and isinstance(name, str):
        present = _MOVED.get((module, name)) or _MOVED.get(module)
        present = present or _FORMER_FAMILIES.sub("raysel.baselines.", module)
        if present != module:
            node["__module__"] = present
            count += 1
    return count
