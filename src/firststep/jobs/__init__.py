"""Many training runs as jobs: trained, resumed and evaluated inline, in local processes or on Ray."""

from firststep.jobs.capacity import Allocation, Capacity
from firststep.jobs.executor import Executor, InlineExecutor
from firststep.jobs.job import MACHINE_SETTINGS, EvaluationSpec, Job, JobEvent, JobState, OnEvent
from firststep.jobs.local import LocalExecutor
from firststep.jobs.ray_executor import RayExecutor
from firststep.jobs.resource_estimate import ResourceEstimate, estimate_resources
from firststep.jobs.runner import run_jobs

__all__ = [
    "MACHINE_SETTINGS",
    "Allocation",
    "Capacity",
    "EvaluationSpec",
    "Executor",
    "InlineExecutor",
    "Job",
    "JobEvent",
    "JobState",
    "LocalExecutor",
    "OnEvent",
    "RayExecutor",
    "ResourceEstimate",
    "estimate_resources",
    "run_jobs",
]
