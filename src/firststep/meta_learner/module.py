"""MetaLearner: a network and an update rule as one module whose loss is differentiated by ``backward()``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from firststep.adaptation import (
    LONGEST_AUTO,
    Learner,
    StepChoice,
    adapt,
    choose_steps,
    start_task,
    steps_from,
    support_gram,
)
from firststep.conditioning import condition_number
from firststep.losses import Kind, Loss, Residuals, as_loss, cross_entropy
from firststep.meta_learner.classes import leading_blocks, serves
from firststep.meta_learner.outer_loss import outer_loss, stacked
from firststep.meta_learner.support_statistics import adapted_network, ignore_mode
from firststep.metagradient import Conditioning, EngineOptions, MetaGradient, TaskReport
from firststep.network import FunctionalModule, Params
from firststep.rules import Moves, Rule, maml, require_rule, scaled
from firststep.task import Inputs, Targets, Task, as_tasks

_NETWORK, _RULE = "network.", "rule_params."


class TaskGradient(NamedTuple):
    """The outer loss of one task and its gradient."""

    gradients: Params
    """By the names of :meth:`MetaLearner.named_parameters`."""
    loss: Tensor
    report: TaskReport


class MetaLearner(nn.Module):
    """Meta-learns a network's initial parameters, and the parameters of the update rule if it has any.

    ``meta(tasks)`` is the outer loss, the sum over tasks of the query loss after ``steps`` inner steps plus
    the conditioning loss. ``loss.backward()`` adds its exact gradient, second order included, to ``.grad`` of
    all parameters::

        meta = MetaLearner(network, maml(rate=0.05), steps=5, conditioning=Conditioning())
        optimiser = torch.optim.Adam(meta.parameters(), 1e-3)
        for tasks in loader:
            optimiser.zero_grad()
            meta(tasks).backward()
            optimiser.step()
        classifier = meta.adapt(images, labels)

    The network that you pass is the one that is trained; there is no copy of its parameters. A forward pass
    computes the gradient along with the loss, unless gradients are disabled (``torch.no_grad()``).

    Args:
        network: any module. The subset ``cls``, the closed form and the heads ``shared`` and ``zero`` need
            one that ends in an ``nn.Linear``. It is used in its current mode, ``train()`` or ``eval()``; its
            buffers, such as running statistics, are read but not updated. Parameters with
            ``requires_grad=False`` stay fixed in both loops.
        rule: the update rule of the inner loop; default :func:`firststep.maml`.
        loss: the loss per sample: a name in ``LOSSES``, a :class:`firststep.Loss`, or any function (output,
            target) → losses [n]; default cross-entropy. Targets are what the loss takes.
        query_loss: that of the query set, if it is another.
        moves: the parameters that the inner loop changes, instead of those that the rule moves by itself: a
            subset, a list of name patterns, or a function of the model that returns names.
        steps: inner steps K.
        conditioning: the conditioning loss; None for plain MAML.
        reduction: ``"sum"`` over the tasks, as in the paper, or ``"mean"``.
        classifier: path of the final linear layer, such as ``"fc"``; found by itself in most networks.
        embedding: path of the last layer before it, for the parameter subset ``emb``.
        embedding_norm: path of that layer's normalisation, for the subset ``ebn``.
        head: how the classifier starts in a task. ``per-class``: every class has a learned row of its own.
            ``shared``: all rows start from one learned vector. ``zero``: all rows start from zero. With the
            latter two the network's classifier is cut to that one row, a task may have any number of classes
            (labels 0, 1, 2, ...), and before the first step all logits of a sample are equal.
        randomness: for networks that draw random numbers, such as dropout in training mode. ``error`` refuses
            them. ``same`` draws the same numbers in all evaluations of a task, so that its gradient is exact,
            and others for the next task; they come from torch's default generator.
        engine: ``stepwise``, whose memory does not grow with K, or ``unrolled``, one big autograd graph.
        compile: compile the inner step and its backward pass: a minute or so at the first call with a new
            shape, faster from then on.
        memory: bytes that inner steps may use to keep their results for the backward pass; see
            :class:`firststep.functional.EngineOptions`.
        saved_dtype: type that these results are rounded to meanwhile, with ``compile=True``; see there too.
        generator: source of the rule's initial parameters, where they are random.

    Examples:
        >>> meta = fs.MetaLearner(network, fs.maml(rate=0.1), steps=2, conditioning=fs.Conditioning())
        >>> optimiser = torch.optim.Adam(meta.parameters(), 1e-3)
        >>> loss = meta([task])
        >>> loss.backward()
        >>> optimiser.step()
        >>> classifier = meta.adapt(support_x, support_y)
        >>> classifier(query_x).shape
        torch.Size([15, 5])
    """

    def __init__(
        self,
        network: nn.Module,
        rule: Rule | None = None,
        *,
        loss: str | Loss | Callable[[Any, Any], Tensor] = cross_entropy,
        query_loss: str | Loss | Callable[[Any, Any], Tensor] | None = None,
        moves: Moves | None = None,
        steps: int = 5,
        conditioning: Conditioning | None = None,
        reduction: Literal["sum", "mean"] = "sum",
        classifier: str | None = None,
        embedding: str | None = None,
        embedding_norm: str | None = None,
        head: str = "per-class",
        randomness: Literal["error", "same"] = "error",
        engine: str = "stepwise",
        compile: bool = False,
        memory: int | None = None,
        saved_dtype: torch.dtype | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if reduction not in ("sum", "mean"):
            raise ValueError(f"reduction must be 'sum' or 'mean', not {reduction!r}")
        self.network = network
        self.rule = maml() if rule is None else require_rule(rule)
        if moves is not None:
            self.rule = self.rule.moving_only(moves)
        self.loss = as_loss(loss)
        self.query_loss = self.loss if query_loss is None else as_loss(query_loss, "query_loss")
        if head != "per-class" and self.loss.kind != "classes":
            raise ValueError(f"head={head!r} needs targets that are classes, not loss {self.loss.name}")
        self.steps = steps
        self.conditioning = conditioning
        self.reduction = reduction
        self.functional = FunctionalModule(
            network,
            classifier,
            embedding=embedding,
            embedding_norm=embedding_norm,
            head=head,
            randomness=randomness,
        )
        initial = self.rule.init(self.functional, self._network_params(), generator)
        # Names of a module's parameters cannot have dots; those of a rule are often paths of layers.
        self.rule_params = nn.ParameterDict()
        for name, value in initial.items():
            self.rule_params[_escaped(name)] = nn.Parameter(value)
        self._options = EngineOptions(engine=engine, compile=compile, memory=memory, saved_dtype=saved_dtype)
        self._engine: MetaGradient | None = None
        self._engine_settings: tuple[Any, ...] = ()
        self._meta_gradient()  # refuses wrong options now, not in the first update

    def forward(
        self,
        tasks: Task | Iterable[Task | tuple[Any, ...]],
        *,
        query_weights: Sequence[float] | None = None,
        return_report: bool = False,
    ) -> Tensor | tuple[Tensor, TaskReport]:
        """The outer loss of a batch of tasks, a scalar.

        Args:
            tasks: :class:`Task` or tuples ``(support_x, support_y, query_x, query_y)``, on the device of the
                parameters. Inputs are a tensor, or a tuple (positional arguments of the network) or dict
                (keyword arguments) of tensors. Targets are what the loss takes.
            query_weights: of the query losses after steps 1..K; default only the last step counts.
            return_report: also return the report: query loss and accuracy [tasks], conditioning [tasks],
                condition numbers and support losses [tasks, K] at the parameters before each step.
        """
        batch = self._as_tasks(tasks)
        params, rule_params = self._network_params(), self._rule_params()
        engine = self._meta_gradient()
        if torch.is_grad_enabled():
            loss, report = outer_loss(
                lambda theta, rule: engine(theta, rule, batch, query_weights=query_weights),
                params,
                rule_params,
            )
        else:
            result = engine.loss(params, rule_params, batch, query_weights=query_weights)
            dtype = next(iter(params.values())).dtype
            loss, report = result.loss.to(dtype), stacked(result.tasks)
        if self.reduction == "mean":
            loss = loss / len(batch)
        return (loss, report) if return_report else loss

    def task_gradients(
        self, tasks: Iterable[Task | tuple[Any, ...]], *, query_weights: Sequence[float] | None = None
    ) -> list[TaskGradient]:
        """The gradient of each task by itself, without touching ``.grad``: for sums of your own."""
        batch = self._as_tasks(tasks)
        return list(self.iterate_task_gradients(batch, query_weights=query_weights, several=len(batch) > 1))

    def iterate_task_gradients(
        self,
        tasks: Iterable[Task | tuple[Any, ...]],
        *,
        query_weights: Sequence[float] | None = None,
        several: bool = True,
    ) -> Iterator[TaskGradient]:
        """:meth:`task_gradients` while they are computed: few tasks and gradients are held at a time.

        Args:
            tasks: the meta-batch, or a part of it.
            query_weights: as of a call.
            several: whether the whole meta-batch has more tasks than one: then small tasks are computed side
                by side on a CPU, each on threads of its own.
        """
        learned = {name for name, value in self._network_params().items() if value.requires_grad}
        results = self._meta_gradient().iterate(
            self._network_params(), self._rule_params(), tasks, query_weights=query_weights, several=several
        )
        for result in results:
            yield TaskGradient(
                {_NETWORK + name: value for name, value in result.params.items() if name in learned}
                | {_RULE + _escaped(name): value for name, value in result.rule_params.items()},
                result.loss,
                result.tasks[0],
            )

    def adapt(self, x: Inputs, y: Targets, *, steps: int | Literal["auto"] | None = None) -> nn.Module:
        """A copy of the network, adapted to a support set: ``adapted(x)`` gives logits or predictions.

        Batch norm normalises by the statistics of the support set, in ``eval()`` mode, in which the copy is
        returned, as in ``train()`` mode. So the logits of a query depend on no other query, and one or a
        thousand may be asked at a time. For queries that are normalised as one batch, as :meth:`forward` and
        ``evaluate`` do it, use ``meta.functional(meta.adapted_params(x, y, steps=5), queries).logits``.

        Args:
            x: inputs of the support set.
            y: its targets; for classes 0..classes-1.
            steps: inner steps to take, also beyond the trained number; default the trained number;
                ``"auto"`` chooses by cross-validation on the support set (:meth:`choose_steps`).
        """
        if steps == "auto":
            steps = self.choose_steps(x, y).steps
        params = self.adapted_params(x, y, steps=self.steps if steps is None else steps)
        network = copy.deepcopy(self.network)
        return ignore_mode(adapted_network(network, self.functional.last_linear, params, x))

    def adapted_params(self, x: Inputs, y: Targets, *, steps: int) -> Params:
        """The network's parameters after that many inner steps on a support set, detached."""
        return adapt(self._learner(), x, y, steps=steps).adapted

    def iterate_steps(self, x: Inputs, y: Targets) -> Iterator[Params]:
        """The network's parameters after 0, 1, 2, ... inner steps on a support set, without end; detached."""
        start = self.start_task(x, y)
        yield start.params
        for params, _ in steps_from(start, x, y):
            yield params

    def start_task(self, x: Inputs, y: Targets) -> Learner:
        """The network and the rule with their parameters at θ(0) of a task, detached."""
        return start_task(self._learner(), x, y)

    def choose_steps(self, x: Inputs, y: Targets, *, longest: int = LONGEST_AUTO) -> StepChoice:
        """The number of inner steps, at most ``longest``, with the lowest loss on held-out support samples.

        Each fold holds out one sample of every class. Where a class has only one, nothing can be held out and
        the trained number is taken. Where the targets are no classes, it holds out every fifth sample.
        """
        return choose_steps(self._learner(), x, y, trained=self.steps, longest=longest)

    @torch.no_grad()
    def condition_number(
        self,
        x: Inputs,
        y: Targets,
        subset: str | Iterable[str] = "cls",
        *,
        residuals: Residuals | None = None,
    ) -> Tensor:
        """λ_max / λ_min of the Gauss-Newton matrix of a support set at the initial parameters.

        Args:
            x: inputs of the support set.
            y: its targets.
            subset: parameters: ``cls``, ``emb``, ``ebn``, ``body``, ``all``, a union such as ``cls+emb``, or
                a list of name patterns.
            residuals: which residuals; default those that the conditioning loss takes.
        """
        if residuals is None and self.conditioning is not None:
            residuals = self.conditioning.chosen_residuals
        gram = support_gram(
            self.functional,
            x,
            y,
            params=self._network_params(),
            subset=subset,
            loss=self.loss,
            residuals=residuals,
        )
        return condition_number(gram)

    def scaled(self, multiplier: float) -> MetaLearner:
        """This learner with inner steps ``multiplier`` times as long; it shares all parameters."""
        if multiplier == 1:
            return self
        longer = copy.copy(self)
        longer.rule = scaled(self.rule, multiplier)
        return longer

    def for_classes(self, ways: int) -> MetaLearner:
        """The learner to use for tasks of so many classes.

        With one row for all classes it is this one. With a row for each class it is this one if there are as
        many, a copy with the first rows (and the rule's parameters for them) if there are more, and an error
        if there are fewer: nothing was learned for the others.
        """
        if serves(self.functional, ways):
            return self
        fewer = copy.deepcopy(self)
        fewer.functional.keep_classes(ways)
        for name, value in leading_blocks(self.rule, fewer.functional, self._rule_params()).items():
            fewer.rule_params[_escaped(name)] = nn.Parameter(value)
        return fewer

    @property
    def kind(self) -> Kind:
        """Kind of problem, from which metrics follow: that of the query loss."""
        return self.query_loss.kind

    @property
    def num_classes(self) -> int:
        """Outputs of the classifier; with one row for all classes, those of the network as it was passed."""
        return self.functional.num_classes

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    def extra_repr(self) -> str:
        return (
            f"rule={self.rule.name}, loss={self.loss.name}, head={self.functional.head}, steps={self.steps}, "
            f"conditioning={self.conditioning}"
        )

    def _as_tasks(self, tasks: Task | Iterable[Task | tuple[Any, ...]]) -> list[Task]:
        return as_tasks(tasks, self.loss.as_target, self.query_loss.as_target)

    def _network_params(self) -> Params:
        return self.functional.params()

    def _rule_params(self) -> Params:
        return {_unescaped(name): value for name, value in self.rule_params.items()}

    def _learner(self) -> Learner:
        params, rule_params = self._network_params(), self._rule_params()
        return Learner(self.functional, self.rule, params, rule_params, loss=self.loss).detached()

    def _meta_gradient(self) -> MetaGradient:
        """Made anew where an attribute has changed, and in copies: compiled functions cannot be copied."""
        settings = (self.rule, self.steps, self.conditioning, self.loss, self.query_loss)
        if self._engine is None or self._engine_settings != settings:
            self._engine_settings = settings
            self._engine = MetaGradient(
                self.functional,
                self.rule,
                steps=self.steps,
                conditioning=self.conditioning,
                loss=self.loss,
                query_loss=self.query_loss,
                options=self._options,
            )
        return self._engine

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_engine": None}


def _escaped(name: str) -> str:
    if "/" in name:
        raise ValueError(f"the rule's parameter {name!r} has a slash in its name; use dots")
    return name.replace(".", "/")


def _unescaped(name: str) -> str:
    return name.replace("/", ".")
