"""Loggers of a training by name: further destinations of the numbers in ``metrics.jsonl``."""

from firststep.training.loggers import csv_file, mlflow_run, tensorboard, wandb_run  # noqa: F401, they register
from firststep.training.loggers.logger import LOGGERS, LoggedRun, Logger, chosen_loggers, register_logger

__all__ = ["LOGGERS", "LoggedRun", "Logger", "chosen_loggers", "register_logger"]
