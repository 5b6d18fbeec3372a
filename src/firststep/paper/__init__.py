"""The paper's experiments: its numbers, the runs that reproduce them, and tables and figures of both.

Your own experiment is a function that returns an :class:`Experiment`, registered by
``@register_experiment("my-experiment")``. ``run_experiments`` trains, tests and collects it,
and ``write_result`` writes its files. ``FIGURES`` registers figures in the same way.
"""

from firststep.utils.extras import extra

with extra("cli", "firststep.paper"):
    from firststep.paper.changes import CHANGEABLE, UNCHANGED, BeyondTraining, Changes
    from firststep.paper.cost import Cost, measure_jobs
    from firststep.paper.describe import budget_of, duration, how_it_was_made
    from firststep.paper.experiment import (
        Experiment,
        Row,
        beyond,
        named_test,
        pair,
        protocol,
        published_cells,
        register_experiment,
        within,
    )
    from firststep.paper.experiment_result import ExperimentResult, collect_result
    from firststep.paper.experiments import EXPERIMENTS
    from firststep.paper.figures import FIGURES
    from firststep.paper.numbers import published
    from firststep.paper.output import page_text, refuse_other_result, write_result
    from firststep.paper.plan import PlannedRun, plan
    from firststep.paper.record import ResultRecord
    from firststep.paper.report import html_overview
    from firststep.paper.reproduce import RunsFailed, run_experiments
    from firststep.paper.scale import SCALES, Scale, is_switch
    from firststep.paper.settings import ExperimentSettings, parse_data
    from firststep.paper.stored import SavedResult, read_results

__all__ = [
    "CHANGEABLE",
    "EXPERIMENTS",
    "FIGURES",
    "SCALES",
    "UNCHANGED",
    "BeyondTraining",
    "Changes",
    "Cost",
    "Experiment",
    "ExperimentResult",
    "ExperimentSettings",
    "PlannedRun",
    "ResultRecord",
    "Row",
    "RunsFailed",
    "SavedResult",
    "Scale",
    "beyond",
    "budget_of",
    "collect_result",
    "duration",
    "how_it_was_made",
    "html_overview",
    "is_switch",
    "measure_jobs",
    "named_test",
    "page_text",
    "pair",
    "parse_data",
    "plan",
    "protocol",
    "published",
    "published_cells",
    "read_results",
    "refuse_other_result",
    "register_experiment",
    "run_experiments",
    "within",
    "write_result",
]
