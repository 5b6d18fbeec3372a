"""The names of ``firststep.training``, loaded at the first use of a name that needs torch."""

from firststep.utils.extras import extra

with extra("cli", "firststep.training"):
    from firststep.training.adaptable import AdaptableNetwork, pretrained_network
    from firststep.training.build import (
        VALIDATION_SEED,
        build_meta_learner,
        choose_device,
        method_of,
        open_data,
        open_images,
        open_training_data,
        training_episodes,
        validation_episodes,
    )
    from firststep.training.builtin import BUILTIN, builtin_models
    from firststep.training.checkpoint import Checkpoint, load_checkpoint, saved_progress, saved_update
    from firststep.training.config import TrainConfig, choices
    from firststep.training.loggers import LOGGERS, LoggedRun, Logger, chosen_loggers, register_logger
    from firststep.training.loop import Interrupted, TrainingProgress, train
    from firststep.training.pretrain_config import PretrainConfig
    from firststep.training.pretrain_record import Pretraining
    from firststep.training.pretraining import PretrainProgress, pretrain
    from firststep.training.provenance import collect_provenance, package_version
    from firststep.training.recipes import RECIPES, recipe
    from firststep.training.run import Run, open_run
    from firststep.training.run_folder import RunTaken
    from firststep.training.run_record import RunRecord
    from firststep.training.sessions import TrainingTime, open_since, training_time
    from firststep.training.settings import (
        DataSettings,
        MethodSettings,
        NetworkSettings,
        OuterLoopSettings,
        RunningSettings,
        TaskSettings,
    )
    from firststep.training.start import check_every_rank_has_tasks, check_same_data
    from firststep.training.sweep import folder_name, parse_sweep, product_of
    from firststep.training.trained import TrainedModel, as_trained, data_for, load_trained

__all__ = [
    "BUILTIN",
    "LOGGERS",
    "RECIPES",
    "VALIDATION_SEED",
    "AdaptableNetwork",
    "Checkpoint",
    "DataSettings",
    "Interrupted",
    "LoggedRun",
    "Logger",
    "MethodSettings",
    "NetworkSettings",
    "OuterLoopSettings",
    "PretrainConfig",
    "PretrainProgress",
    "Pretraining",
    "Run",
    "RunRecord",
    "RunTaken",
    "RunningSettings",
    "TaskSettings",
    "TrainConfig",
    "TrainedModel",
    "TrainingProgress",
    "TrainingTime",
    "as_trained",
    "build_meta_learner",
    "builtin_models",
    "check_every_rank_has_tasks",
    "check_same_data",
    "choices",
    "choose_device",
    "chosen_loggers",
    "collect_provenance",
    "data_for",
    "folder_name",
    "load_checkpoint",
    "load_trained",
    "method_of",
    "open_data",
    "open_images",
    "open_run",
    "open_since",
    "open_training_data",
    "package_version",
    "parse_sweep",
    "pretrain",
    "pretrained_network",
    "product_of",
    "recipe",
    "register_logger",
    "saved_progress",
    "saved_update",
    "train",
    "training_episodes",
    "training_time",
    "validation_episodes",
]
