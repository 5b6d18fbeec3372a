"""Many training runs: jobs that are trained, resumed and tested as machines allow, here or on a cluster."""

from firststep.jobs.executor import Executor
from firststep.jobs.fleet import run_fleet
from firststep.jobs.job import Job, Report, Test
from firststep.jobs.local import LocalExecutor
from firststep.jobs.needs import Needs, needs
from firststep.jobs.on_ray import RayExecutor

__all__ = [
    "Executor",
    "Job",
    "LocalExecutor",
    "Needs",
    "RayExecutor",
    "Report",
    "Test",
    "needs",
    "run_fleet",
]
