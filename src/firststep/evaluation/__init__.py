"""Per-step tests: accuracy and condition number after every inner step, and what to make of them."""

from firststep.evaluation.measure import Measurement, measure_task, measure_tasks

__all__ = ["Measurement", "measure_task", "measure_tasks"]
