"""Types that a model file may hold: those of a list, and estimators imported here."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping

from sklearn.base import BaseEstimator

from raysel.base.registry import GROUP, OWN
from raysel.core.plugins import plugin_targets

#: Classes of scikit-learn that a model file may hold, by module.
_CLASSES = {
    "_loss.link": "HalfLogitLink IdentityLink Interval LogLink LogitLink MultinomialLogit",
    "_loss.loss": (
        "AbsoluteError ExponentialLoss HalfBinomialLoss HalfGammaLoss "
        "HalfMultinomialLoss HalfPoissonLoss HalfSquaredError HalfTweedieLossIdentity HuberLoss "
        "PinballLoss"
    ),
    "calibration": "CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration",
    "cluster._agglomerative": "FeatureAgglomeration",
    "cluster._kmeans": "KMeans MiniBatchKMeans",
    "compose._column_transformer": "ColumnTransformer",
    "compose._target": "TransformedTargetRegressor",
    "cross_decomposition._pls": "CCA PLSCanonical PLSRegression PLSSVD",
    "decomposition._dict_learning": "DictionaryLearning MiniBatchDictionaryLearning",
    "decomposition._factor_analysis": "FactorAnalysis",
    "decomposition._fastica": "FastICA",
    "decomposition._incremental_pca": "IncrementalPCA",
    "decomposition._kernel_pca": "KernelPCA",
    "decomposition._lda": "LatentDirichletAllocation",
    "decomposition._nmf": "MiniBatchNMF NMF",
    "decomposition._pca": "PCA",
    "decomposition._sparse_pca": "MiniBatchSparsePCA SparsePCA",
    "decomposition._truncated_svd": "TruncatedSVD",
    "discriminant_analysis": "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis",
    "dummy": "DummyClassifier DummyRegressor",
    "ensemble._bagging": "BaggingClassifier BaggingRegressor",
    "ensemble._forest": (
        "ExtraTreesClassifier ExtraTreesRegressor RandomForestClassifier "
        "RandomForestRegressor RandomTreesEmbedding"
    ),
    "ensemble._gb": "GradientBoostingClassifier GradientBoostingRegressor",
    "ensemble._hist_gradient_boosting.binning": "_BinMapper",
    "ensemble._hist_gradient_boosting.gradient_boosting": (
        "HistGradientBoostingClassifier HistGradientBoostingRegressor"
    ),
    "ensemble._hist_gradient_boosting.predictor": "TreePredictor",
    "ensemble._stacking": "StackingClassifier StackingRegressor",
    "ensemble._voting": "VotingClassifier VotingRegressor",
    "ensemble._weight_boosting": "AdaBoostClassifier AdaBoostRegressor",
    "feature_selection._from_model": "SelectFromModel",
    "feature_selection._rfe": "RFE RFECV",
    "feature_selection._sequential": "SequentialFeatureSelector",
    "feature_selection._univariate_selection": (
        "GenericUnivariateSelect SelectFdr SelectFpr SelectFwe SelectKBest SelectPercentile"
    ),
    "feature_selection._variance_threshold": "VarianceThreshold",
    "gaussian_process._gpc": "GaussianProcessClassifier _BinaryGaussianProcessClassifierLaplace",
    "gaussian_process._gpr": "GaussianProcessRegressor",
    "gaussian_process.kernels": (
        "CompoundKernel ConstantKernel DotProduct ExpSineSquared "
        "Exponentiation Matern PairwiseKernel Product RBF RationalQuadratic Sum WhiteKernel"
    ),
    "impute._base": "MissingIndicator SimpleImputer",
    "impute._knn": "KNNImputer",
    "isotonic": "IsotonicRegression",
    "kernel_approximation": (
        "AdditiveChi2Sampler Nystroem PolynomialCountSketch RBFSampler SkewedChi2Sampler"
    ),
    "kernel_ridge": "KernelRidge",
    "linear_model._base": "LinearRegression",
    "linear_model._bayes": "ARDRegression BayesianRidge",
    "linear_model._coordinate_descent": (
        "ElasticNet ElasticNetCV Lasso LassoCV "
        "MultiTaskElasticNet MultiTaskElasticNetCV MultiTaskLasso MultiTaskLassoCV"
    ),
    "linear_model._glm.glm": "GammaRegressor PoissonRegressor TweedieRegressor",
    "linear_model._huber": "HuberRegressor",
    "linear_model._least_angle": "Lars LarsCV LassoLars LassoLarsCV LassoLarsIC",
    "linear_model._logistic": "LogisticRegression LogisticRegressionCV",
    "linear_model._omp": "OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV",
    "linear_model._passive_aggressive": "PassiveAggressiveClassifier PassiveAggressiveRegressor",
    "linear_model._perceptron": "Perceptron",
    "linear_model._quantile": "QuantileRegressor",
    "linear_model._ransac": "RANSACRegressor",
    "linear_model._ridge": "Ridge RidgeCV RidgeClassifier RidgeClassifierCV",
    "linear_model._stochastic_gradient": "SGDClassifier SGDRegressor",
    "linear_model._theil_sen": "TheilSenRegressor",
    "manifold._isomap": "Isomap",
    "manifold._locally_linear": "LocallyLinearEmbedding",
    "metrics._dist_metrics": (
        "ChebyshevDistance64 EuclideanDistance64 ManhattanDistance64 MinkowskiDistance64"
    ),
    "model_selection._classification_threshold": (
        "FixedThresholdClassifier TunedThresholdClassifierCV"
    ),
    "multiclass": "OneVsOneClassifier OneVsRestClassifier OutputCodeClassifier _ConstantPredictor",
    "multioutput": "ClassifierChain MultiOutputClassifier MultiOutputRegressor RegressorChain",
    "naive_bayes": "BernoulliNB CategoricalNB ComplementNB GaussianNB MultinomialNB",
    "neighbors._ball_tree": "BallTree",
    "neighbors._classification": "KNeighborsClassifier RadiusNeighborsClassifier",
    "neighbors._graph": "KNeighborsTransformer RadiusNeighborsTransformer",
    "neighbors._kd_tree": "KDTree",
    "neighbors._nca": "NeighborhoodComponentsAnalysis",
    "neighbors._nearest_centroid": "NearestCentroid",
    "neighbors._regression": "KNeighborsRegressor RadiusNeighborsRegressor",
    "neighbors._unsupervised": "NearestNeighbors",
    "neural_network._multilayer_perceptron": "MLPClassifier MLPRegressor",
    "neural_network._rbm": "BernoulliRBM",
    "neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
    "pipeline": "FeatureUnion Pipeline",
    "preprocessing._data": (
        "Binarizer KernelCenterer MaxAbsScaler MinMaxScaler Normalizer "
        "PowerTransformer QuantileTransformer RobustScaler StandardScaler"
    ),
    "preprocessing._discretization": "KBinsDiscretizer",
    "preprocessing._encoders": "OneHotEncoder OrdinalEncoder",
    "preprocessing._function_transformer": "FunctionTransformer",
    "preprocessing._label": "LabelBinarizer LabelEncoder MultiLabelBinarizer",
    "preprocessing._polynomial": "PolynomialFeatures SplineTransformer",
    "preprocessing._target_encoder": "TargetEncoder",
    "random_projection": "GaussianRandomProjection SparseRandomProjection",
    "semi_supervised._label_propagation": "LabelPropagation LabelSpreading",
    "semi_supervised._self_training": "SelfTrainingClassifier",
    "svm._classes": "LinearSVC LinearSVR NuSVC NuSVR SVC SVR",
    "tree._classes": (
        "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor"
    ),
}
#: Classes of other packages, which are imported only where a model file names them.
_OTHERS = {
    "imblearn.base": "FunctionSampler",
    "imblearn.combine._smote_enn": "SMOTEENN",
    "imblearn.combine._smote_tomek": "SMOTETomek",
    "imblearn.ensemble._bagging": "BalancedBaggingClassifier",
    "imblearn.ensemble._easy_ensemble": "EasyEnsembleClassifier",
    "imblearn.ensemble._forest": "BalancedRandomForestClassifier",
    "imblearn.ensemble._weight_boosting": "RUSBoostClassifier",
    "imblearn.metrics.pairwise": "ValueDifferenceMetric",
    "imblearn.over_sampling._adasyn": "ADASYN",
    "imblearn.over_sampling._random_over_sampler": "RandomOverSampler",
    "imblearn.over_sampling._smote.base": "SMOTE SMOTEN SMOTENC",
    "imblearn.over_sampling._smote.cluster": "KMeansSMOTE",
    "imblearn.over_sampling._smote.filter": "BorderlineSMOTE SVMSMOTE",
    "imblearn.pipeline": "Pipeline",
    "imblearn.under_sampling._prototype_generation._cluster_centroids": "ClusterCentroids",
    "imblearn.under_sampling._prototype_selection._condensed_nearest_neighbour": (
        "CondensedNearestNeighbour"
    ),
    "imblearn.under_sampling._prototype_selection._edited_nearest_neighbours": (
        "AllKNN EditedNearestNeighbours RepeatedEditedNearestNeighbours"
    ),
    "imblearn.under_sampling._prototype_selection._instance_hardness_threshold": (
        "InstanceHardnessThreshold"
    ),
    "imblearn.under_sampling._prototype_selection._nearmiss": "NearMiss",
    "imblearn.under_sampling._prototype_selection._neighbourhood_cleaning_rule": (
        "NeighbourhoodCleaningRule"
    ),
    "imblearn.under_sampling._prototype_selection._one_sided_selection": "OneSidedSelection",
    "imblearn.under_sampling._prototype_selection._random_under_sampler": "RandomUnderSampler",
    "imblearn.under_sampling._prototype_selection._tomek_links": "TomekLinks",
    "lightgbm.basic": "Booster",
    "lightgbm.sklearn": "LGBMClassifier LGBMRanker LGBMRegressor",
    "scipy.interpolate._bsplines": "BSpline",
    "xgboost.core": "Booster",
    "xgboost.sklearn": "XGBClassifier XGBRFClassifier XGBRFRegressor XGBRanker XGBRegressor",
}


def _full_names(listed: Mapping[str, str], package: str = "") -> frozenset[str]:
    """Return the full names of classes that are listed by module, a text of names each."""
    names: set[str] = set()
    for module, classes in listed.items():
        names |= {f"{package}{module}.{name}" for name in classes.split()}
    return frozenset(names)


SKLEARN = _full_names(_CLASSES, "sklearn.")
_OTHER_CLASSES = _full_names(_OTHERS)
#: Losses of scikit-learn in compiled code.
_LOSSES = _full_names(
    {
        "_loss._loss": (
            "CyAbsoluteError CyExponentialLoss CyHalfBinomialLoss CyHalfGammaLoss"
            " CyHalfMultinomialLoss CyHalfPoissonLoss CyHalfSquaredError CyHalfTweedieLoss"
            " CyHalfTweedieLossIdentity CyHuberLoss CyPinballLoss"
        ),
        "linear_model._sgd_fast": (
            "EpsilonInsensitive Hinge ModifiedHuber SquaredEpsilonInsensitive SquaredHinge"
        ),
    },
    "sklearn.",
)
#: Functions that a model file may name.
FUNCTIONS = frozenset(
    {
        "numpy.mean",
        "scipy._lib.array_api_compat.numpy._aliases.asarray",
        "sklearn.feature_selection._mutual_info.mutual_info_classif",
        "sklearn.feature_selection._mutual_info.mutual_info_regression",
        "sklearn.feature_selection._univariate_selection.chi2",
        "sklearn.feature_selection._univariate_selection.f_classif",
        "sklearn.feature_selection._univariate_selection.f_regression",
    }
)

#: Arrays, and scalars of these types.
_ARRAYS = (
    *("ndarray", "bool", "bool_", "float32", "float64", "str_"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)
#: Names that a node of each kind may have; None: any, because skops makes the same of all.
#: ObjectNode is not listed.
KINDS: dict[str, frozenset[str] | None] = {
    "BytearrayNode": frozenset({"builtins.bytearray"}),
    "BytesNode": frozenset({"builtins.bytes"}),
    "DefaultDictNode": frozenset({"collections.defaultdict"}),
    "DictNode": frozenset(
        {"builtins.dict", "collections.OrderedDict", "sklearn.utils._bunch.Bunch"}
    ),
    "DTypeNode": frozenset({"numpy.dtype"}),
    "FunctionNode": FUNCTIONS,
    "JsonNode": None,
    "ListNode": frozenset({"builtins.list"}),
    "LossNode": _LOSSES,
    "NdArrayNode": frozenset(f"numpy.{name}" for name in _ARRAYS),
    "RandomGeneratorNode": frozenset({"numpy.random._generator.Generator"}),
    "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
    "SetNode": frozenset({"builtins.set"}),
    "SliceNode": frozenset({"builtins.slice"}),
    "TreeNode": frozenset({"sklearn.tree._tree.Tree"}),
    "TupleNode": frozenset({"builtins.tuple"}),
    "TypeNode": frozenset(
        {
            "builtins.bool",
            "builtins.float",
            "builtins.int",
            "builtins.str",
            "collections.OrderedDict",
            "numpy.float64",
            "numpy.int32",
            "numpy.int64",
            "numpy.str_",
        }
    ),
}


#: raysel's own classes in model files besides the registered methods.
_PARTS = (
    "raysel.base.adapter.ScikitLearnMethod",
    "raysel.base.importance.PermutationImportance",
    "raysel.base.label_codes.CodedClassifier",
    "raysel.evaluation.neighbours.NearestNeighborsClassifier",
    "raysel.evaluation.pipeline.FeaturePipeline",
    "raysel.evaluation.selectors.RankedClassifier",
    "raysel.evaluation.selectors.RankedSelector",
    "raysel.data.preparation.combat.SiteHarmoniser",
    "raysel.data.preparation.joining.ClusterMeans",
    "raysel.data.preparation.joining.ParcelMeans",
    "raysel.data.preparation.preparation.Preparation",
    "raysel.data.preparation.tasks.TaskPreparation",
    "raysel.data.preparation.steps.JointScaler",
    "raysel.data.preparation.steps.Log1p",
    "raysel.data.preparation.steps.NearConstantFilter",
    "raysel.data.preparation.steps.QuantileClipper",
    "raysel.data.preparation.steps.Residualiser",
    "raysel.data.scaling.UnitScaler",
    "raysel.data.scaling.ModalityScaler",
    "raysel.data.scaling.TaskScaler",
    "raysel.results.feature_selector.FeatureSelector",
)


#: Types that skops does not know as plain data.
_PLAIN = (
    "builtins.bytearray",
    "collections.OrderedDict",
    "collections.defaultdict",
    "numpy.dtype",
    "numpy.random._generator.Generator",
    "numpy.str_",
    "numpy.uint64",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
)


def trusted_types() -> frozenset[str]:
    """List the classes that a model file may contain.

    They are raysel's registered methods and scalers, the classes that other packages register under
    the entry point ``raysel.estimators``, and those of scikit-learn, imbalanced-learn, LightGBM and
    XGBoost; none is imported. A file may also hold any other estimator whose class the program has
    imported.

    Returns
    -------
    frozenset of str
        Dotted names of the classes.

    Examples
    --------
    >>> "raysel.data.scaling.UnitScaler" in trusted_types()
    True
    """
    methods = (target.replace(":", ".") for target in OWN.values())
    listed = {*_PARTS, *SKLEARN, *_OTHER_CLASSES, *_LOSSES, *FUNCTIONS, *_PLAIN}
    return frozenset([*methods, *plugin_targets(GROUP), *listed])


def is_imported_estimator(name: str) -> bool:
    """Return whether a dotted name is an estimator's class in a module imported here."""
    module, _, attribute = name.rpartition(".")
    if module not in sys.modules:
        return False
    found = vars(sys.modules[module]).get(attribute)
    return (
        isinstance(found, type) and issubclass(found, BaseEstimator) and found.__module__ == module
    )


def imported_estimators(names: Collection[str]) -> set[str]:
    """Return the names of estimators outside the list whose classes this process has imported."""
    listed = trusted_types()
    return {name for name in names if name not in listed and is_imported_estimator(name)}
