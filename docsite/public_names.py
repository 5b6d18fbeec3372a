"""The public names that each page of the reference documents, in reading order.

Names that only our own packages use belong into ``_internal.py`` of their package. ``BETWEEN_PACKAGES`` lists
those that a package still exports beside its public names; they may change without notice. An exported name
that is in neither table fails a test.
"""

from __future__ import annotations

GROUPS: dict[str, dict[str, list[str]]] = {
    "firststep": {
        "Meta-learning": ["MetaLearner", "Task", "Conditioning"],
        "Conditioning": [
            *("conditioning_loss", "watch", "condition_number", "numerical_rank", "classifier_gram"),
            *("jacobian_gram", "eigenvalues", "log_eigenvalue_variance", "log_condition_number"),
            *("residuals", "cross_entropy_residuals", "CONDITIONING_LOSSES"),
        ],
        "Rules": [
            *("maml", "fomaml", "anil", "boil", "meta_sgd", "meta_curvature", "modgrad", "warp_maml", "gap"),
            *("maml_plus_plus", "gauss_newton", "momentum", "adam", "rmsprop", "alfa", "metal"),
            *("QUERY_WEIGHTS", "annealed_query_weights", "equal_query_weights"),
        ],
        "Rules of your own": ["Rule", "stateless", "chain", "clip_by_norm", "weight_decay"],
        "Losses": [
            *("Loss", "LOSSES", "cross_entropy", "token_cross_entropy", "binary_cross_entropy"),
            *("squared_error", "absolute_error", "huber", "poisson", "register_loss"),
        ],
        "Methods by name": ["METHODS", "Method", "build_method"],
        "Networks": ["build_backbone", "BACKBONES", "Backbone", "warp"],
        "Process and errors": ["keep_freed_memory", "FirststepError"],
    },
    "firststep.functional": {
        "The network as a function": ["FunctionalModule", "Output", "Params"],
        "Tasks": ["as_task", "Inputs"],
        "The inner loop": ["Learner", "inner_step", "Aux", "adapt", "Trajectory", "iterate_steps"],
        "How many steps": ["choose_steps", "StepChoice"],
        "Gram matrix": ["support_gram", "Residuals"],
        "The meta-gradient": [
            "MetaGradient",
            "EngineOptions",
            "meta_gradient",
            "MetaGradientResult",
            "TaskReport",
        ],
    },
    "firststep.conditioning": {"Beyond the names of firststep": ["Watch", "GramLoss", "scaled_errors"]},
    "firststep.rules": {
        "Beyond the names of firststep": [
            *("SupportLoss", "scaled", "register_method", "no_parameters", "descend", "require_rate"),
        ]
    },
    "firststep.methods": {
        "Beyond the names of firststep": ["MethodBuilder", "count_parameters", "ParameterCounts"]
    },
    "firststep.backbones": {
        "Networks": ["Conv", "ResNet", "WarpedConv", "EfficientNetLite", "Mlp", "BatchStatisticsNorm"],
        "Networks from elsewhere": ["build_external", "make_network", "freeze"],
        "Networks by name": ["register_backbone"],
    },
    "firststep.data": {
        "Datasets": [
            "open_dataset",
            "from_arrays",
            "Dataset",
            "CachedDataset",
            "Split",
            "DatasetMismatchError",
        ],
        "Episodes": ["Episodes", "Episode", "Augmentation"],
        "Other tasks": ["open_tasks", "register_tasks", "TaskSource", "TASKS"],
        "Images": ["Preprocessing", "NORMALISATIONS", "load_image"],
        "A dataset of your own": [
            *("register_dataset", "DatasetInfo", "Layout", "Source", "ClassImages", "FileImages"),
            *("ArrayImages", "EncodedImages", "GeneratedImages", "OfficialSplits", "PublishedFile"),
        ],
        "What there is": ["DATASETS", "get_dataset_info", "download_files", "user_cache", "ProgressCallback"],
        "Pictures of data": ["write_class_sheet", "write_episode_sheet"],
    },
    "firststep.evaluation": {
        "Testing": ["evaluate", "EvaluationSettings", "Evaluation", "load_evaluation", "half_width"],
        "Comparing": [
            *("paired_differences", "PairedDifference", "comparison_table", "comparison_frame"),
            *("steps_table", "metrics_table", "comparison_figure", "html_report"),
        ],
        "Metrics per step": [
            *("METRICS", "metrics_of", "register_metric", "Metric", "AdaptationState", "Measurement"),
            *("measure_task", "measure_tasks"),
            "to_task",
        ],
        "Diagnosis": ["diagnose", "Spectrum", "spectrum_figure", "measure_first_step", "FirstStep"],
        "Your own images": [
            *("load_support", "ImageSupport", "query_files", "ImageFiles", "load_images", "adapt_to_images"),
            "AdaptedModel",
            *("cross_validate", "CrossValidation", "CLASSIFIERS", "fit_temperature"),
            *("Confusion", "confusion_figure"),
        ],
        "Probes on features": ["nearest_means", "ridge", "logistic", "Predict"],
    },
    "firststep.training": {
        "Training": ["train", "TrainConfig", "recipe", "RECIPES", "TrainingProgress", "Interrupted"],
        "Trained models": ["load_trained", "TrainedModel", "data_for"],
        "Runs": [
            *("open_run", "Run", "RunRecord", "RunTaken", "Checkpoint", "load_checkpoint"),
            *("training_time", "TrainingTime"),
        ],
        "Loggers": ["LOGGERS", "register_logger", "Logger", "LoggedRun", "chosen_loggers"],
        "Pretraining": ["pretrain", "PretrainConfig", "Pretraining", "PretrainProgress"],
        "Sweeps": ["parse_sweep", "product_of"],
        "Parts": ["open_data", "build_meta_learner"],
    },
    "firststep.jobs": {
        "Jobs": ["run_jobs", "Job", "EvaluationSpec", "JobEvent", "JobState", "OnEvent"],
        "Executors": ["LocalExecutor", "InlineExecutor", "RayExecutor", "Executor"],
        "Resources": ["estimate_resources", "ResourceEstimate"],
    },
    "firststep.paper": {
        "Experiments": [
            *("EXPERIMENTS", "register_experiment", "Experiment", "Row", "pair", "protocol", "published"),
        ],
        "Tests": ["within", "beyond", "named_test"],
        "Scales": ["Scale", "SCALES", "Changes", "ExperimentSettings", "parse_data"],
        "Running": ["run_experiments", "RunsFailed", "plan", "PlannedRun", "collect_result"],
        "Results": [
            *("ExperimentResult", "ResultRecord", "SavedResult", "write_result", "read_results"),
            *("html_overview", "FIGURES"),
        ],
    },
    "firststep.deployment": {
        "Files": [
            "save_adapted",
            "export_model",
            "EXPORT_ENDINGS",
            "load_deployed",
            "DeployedModel",
            "Answers",
        ],
        "Parts": ["make_deployable", "ImageClassifier", "ModelCard", "deployed"],
    },
    "firststep.hub": {"Models on the Hub": ["HubLearner", "HubClassifier"]},
}

BETWEEN_PACKAGES: dict[str, set[str]] = {
    "firststep": {"functional"},  # a module with a page of its own
    "firststep.conditioning": {
        *("JACOBIAN_MEMORY", "back_to", "counting_saved", "float64_device", "gram_in_graph", "has_float64"),
        "in_float64",
        *("linear_gram", "output_gram", "rotation", "smaller_gram"),
    },
    "firststep.backbones": {
        *("EfficientNetLiteBody", "body_features", "check_spec", "code_of_the_user", "frozen_body"),
        *("HUGGING_FACE", "TIMM", "first_derivatives_only", "native_image_size"),
        *("MOST_TOKENS", "SENTENCE_FEATURES", "SentenceEncoder", "Tokenizer"),
    },
    "firststep.losses": {"Kind", "ResidualKind", "as_loss", "first_tensor"},
    "firststep.rules": {"MethodBuilder", "Moves", "require_rule"},
    "firststep.data": {
        *("IMAGE_ENDINGS", "Draws", "EpisodeRows", "FeatureDataset", "FeatureSplit", "FeatureStore"),
        *("FrozenBody",),
        *("decode", "entries", "read_columns", "require_png", "require_regular", "Tasks", "tasks_of"),
    },
    "firststep.training": {
        *(
            "BUILTIN",
            "VALIDATION_SEED",
            "as_trained",
            "builtin_models",
            "check_every_rank_has_tasks",
            "check_same_data",
        ),
        *(
            "choices",
            "choose_device",
            "collect_provenance",
            "folder_name",
            "method_of",
            "open_training_data",
            "saved_progress",
        ),
        *("saved_update", "training_episodes", "validation_episodes", "open_images", "open_since"),
        *("package_version", "DataSettings", "NetworkSettings", "MethodSettings", "OuterLoopSettings"),
        *("AdaptableNetwork", "RunningSettings", "TaskSettings", "pretrained_network"),
    },
    "firststep.jobs": {"MACHINE_SETTINGS", "Allocation", "Capacity"},
    "firststep.paper": {
        *("CHANGEABLE", "UNCHANGED", "BeyondTraining", "Cost", "duration", "how_it_was_made", "is_switch"),
        *("budget_of", "measure_jobs", "page_text", "published_cells", "refuse_other_result"),
    },
}
