"""The paper's experiments: its numbers, what reproduces them, and tables and figures beside them.

A user's own experiment is a function that returns an :class:`Experiment`, registered by
``EXPERIMENTS.register("my-experiment", my_experiment)``; ``run_experiments`` trains, tests and collects it,
and ``write_result`` writes its table. ``FIGURES`` takes figures in the same way.
"""

from firststep.utils.extras import extra

with extra("cli", "firststep.paper"):
    from firststep.paper.cost import Cost, measure_jobs
    from firststep.paper.experiment import (
        Experiment,
        Row,
        beyond,
        named_test,
        protocol,
        published_cells,
        twins,
        within,
    )
    from firststep.paper.experiment_result import ExperimentResult, collect_result
    from firststep.paper.experiments import EXPERIMENTS
    from firststep.paper.figures import FIGURES
    from firststep.paper.numbers import published
    from firststep.paper.output import read_results, refuse_other_result, write_result
    from firststep.paper.overview import html_overview
    from firststep.paper.plan import PlannedRun, plan
    from firststep.paper.report_summary import markdown_summary
    from firststep.paper.reproduce import RunsFailed, run_experiments
    from firststep.paper.saved_trainings import with_saved
    from firststep.paper.scale import SCALES, UNCHANGED, Changes, Scale
    from firststep.paper.settings import ExperimentSettings, parse_data

__all__ = [
    "EXPERIMENTS",
    "FIGURES",
    "SCALES",
    "UNCHANGED",
    "Changes",
    "Cost",
    "Experiment",
    "ExperimentResult",
    "ExperimentSettings",
    "PlannedRun",
    "Row",
    "RunsFailed",
    "Scale",
    "beyond",
    "collect_result",
    "html_overview",
    "markdown_summary",
    "measure_jobs",
    "named_test",
    "parse_data",
    "plan",
    "protocol",
    "published",
    "published_cells",
    "read_results",
    "refuse_other_result",
    "run_experiments",
    "twins",
    "with_saved",
    "within",
    "write_result",
]
