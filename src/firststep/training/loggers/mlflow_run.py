"""Log to MLflow: the server or store of ``MLFLOW_TRACKING_URI``, else MLflow's default."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from firststep.training.loggers.logger import LoggedRun, register_logger
from firststep.training.loggers.remembered import remembered
from firststep.utils.extras import extra

LONGEST = 500
"""Largest length of a parameter's value that all stores of MLflow accept."""
BATCH = 1000
"""Largest number of metrics per call that a server of MLflow accepts."""


@register_logger("mlflow")
class _Mlflow:
    def __init__(self, run: LoggedRun) -> None:
        with extra("mlflow", "--log mlflow"):
            from mlflow import MlflowClient
            from mlflow.entities import Metric, Param
        self._metric = Metric
        self._client = MlflowClient()
        self._id = remembered(run.folder / "mlflow-run.txt", lambda: self._new_run(run.name))
        parameters = [Param(name, str(value)[:LONGEST]) for name, value in run.config.items()]
        # MLflow does not allow parameters to change, but a resumed run may have more updates.
        known = self._client.get_run(self._id).data.params
        self._client.log_batch(self._id, params=[each for each in parameters if each.key not in known])
        self._client.update_run(self._id, status="RUNNING")

    def _new_run(self, name: str) -> str:
        project = os.environ.get("MLFLOW_EXPERIMENT_NAME", "firststep")
        found = self._client.get_experiment_by_name(project)
        experiment = self._client.create_experiment(project) if found is None else found.experiment_id
        return str(self._client.create_run(experiment, run_name=name).info.run_id)

    def write(self, update: int, values: Mapping[str, float]) -> None:
        now = int(1000 * time.time())
        metrics = [self._metric(name, value, now, update) for name, value in values.items()]
        for first in range(0, len(metrics), BATCH):
            self._client.log_batch(self._id, metrics=metrics[first : first + BATCH])

    def close(self) -> None:
        self._client.set_terminated(self._id)
