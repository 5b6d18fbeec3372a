"""Many training runs: jobs that are trained, resumed and tested as machines allow, here or on a cluster."""

from firststep.fleet.executor import Executor
from firststep.fleet.fleet import run_fleet
from firststep.fleet.job import Job, Report, Test
from firststep.fleet.local import LocalExecutor
from firststep.fleet.needs import Needs, needs
from firststep.fleet.on_ray import RayExecutor

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
