"""MetaLearner: a network and an update rule as one module with a differentiable outer loss."""

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
from firststep.conditioning import back_to, condition_number
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
    """Gradient by the names of :meth:`MetaLearner.named_parameters`."""
    loss: Tensor
    report: TaskReport


class MetaLearner(nn.Module):
    """A network and an update rule whose initial parameters are meta-learned.

    ``meta(tasks)`` is the outer loss: the sum over tasks of the query loss after ``steps`` inner steps plus
    the conditioning loss. ``loss.backward()`` adds its exact second-order gradient to ``.grad`` of all
    parameters::

        meta = MetaLearner(network, maml(rate=0.05), steps=5, conditioning=Conditioning())
        optimiser = torch.optim.Adam(meta.parameters(), 1e-3)
        for tasks in loader:
            optimiser.zero_grad()
            meta(tasks).backward()
            optimiser.step()
        classifier = meta.adapt(images, labels)

    The network is trained in place; its parameters are not copied. A forward pass computes the gradient along
    with the loss, unless gradients are disabled (``torch.no_grad()``).

    Args:
        network: any module. The subset ``cls``, the closed form and the heads ``shared`` and ``zero`` need
            one that ends in an ``nn.Linear``. It runs in its current mode, ``train()`` or ``eval()``. Buffers
            such as running statistics are read but not updated. Parameters with ``requires_grad=False`` stay
            fixed in both loops.
        rule: the update rule of the inner loop; default :func:`firststep.maml`.
        loss: the loss per sample: a name in ``LOSSES``, a :class:`firststep.Loss`, or any function (output,
            target) → losses [n]; default cross-entropy. It determines the form of the targets.
        query_loss: loss of the query set; default ``loss``.
        moves: parameters that the inner loop changes, in place of the rule's own choice: a subset, a list of
            name patterns, or a function from the model to names.
        steps: number of inner steps K.
        conditioning: the conditioning loss; None for plain MAML.
        reduction: ``"sum"`` over the tasks, as in the paper, or ``"mean"``.
        classifier: path of the final linear layer, such as ``"fc"``; found automatically in most networks.
        embedding: path of the last layer before it, for the parameter subset ``emb``.
        embedding_norm: path of that layer's normalisation, for the subset ``ebn``.
        head: initial classifier of a task. ``per-class``: one learned row per class. ``shared``: all rows
            start from one learned vector. ``zero``: all rows start from zero. ``prototypes``: each row
            starts from the mean support feature of its class (Proto-MAML). The last three reduce the
            network's classifier to one row, and tasks may have any number of classes (labels 0, 1, 2, ...).
            With ``shared`` and ``zero`` all logits of a sample are equal before the first step.
        randomness: for networks that draw random numbers, such as dropout in training mode. ``error`` refuses
            them. ``same`` repeats the numbers in all evaluations of a task, so that its gradient is exact,
            and draws new ones for the next task from torch's default generator.
        engine: ``stepwise``, whose memory does not grow with K, or ``unrolled``, one large autograd graph.
        compile: compile the inner step and its backward pass. The first call with a new shape takes about a
            minute; later calls are faster.
        memory: memory budget in bytes for results that inner steps keep for the backward pass; see
            :class:`firststep.functional.EngineOptions`.
        saved_dtype: dtype in which these results are kept, with ``compile=True``; see there too.
        precision: ``bf16`` runs the network in bfloat16, all else in the dtype of the parameters; see there.
        generator: source of the rule's initial parameters, if they are random.

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
        precision: str | None = None,
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
        # Names of a module's parameters cannot contain dots, but those of a rule are often paths of layers.
        self.rule_params = nn.ParameterDict()
        for name, value in initial.items():
            self.rule_params[_escaped(name)] = nn.Parameter(value)
        self._options = EngineOptions(
            engine=engine, compile=compile, memory=memory, saved_dtype=saved_dtype, precision=precision
        )
        self._engine: MetaGradient | None = None
        self._engine_settings: tuple[Any, ...] = ()
        self._meta_gradient()  # refuse wrong options now rather than in the first update

    def forward(
        self,
        tasks: Task | Iterable[Task | tuple[Any, ...]],
        *,
        query_weights: Sequence[float] | None = None,
        return_report: bool = False,
    ) -> Tensor | tuple[Tensor, TaskReport]:
        """Return the outer loss of a batch of tasks, a scalar.

        Args:
            tasks: :class:`Task` or tuples ``(support_x, support_y, query_x, query_y)``, on the device of the
                parameters. Inputs are a tensor, or a tuple (positional arguments of the network) or dict
                (keyword arguments) of tensors. The loss determines the form of the targets.
            query_weights: weights of the query losses after steps 1..K; default only the last step counts.
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
            loss, report = back_to(result.loss, next(iter(params.values()))), stacked(result.tasks)
        if self.reduction == "mean":
            loss = loss / len(batch)
        return (loss, report) if return_report else loss

    def task_gradients(
        self, tasks: Iterable[Task | tuple[Any, ...]], *, query_weights: Sequence[float] | None = None
    ) -> list[TaskGradient]:
        """Return the gradient per task without touching ``.grad``, to sum them yourself."""
        batch = self._as_tasks(tasks)
        return list(self.iterate_task_gradients(batch, query_weights=query_weights, several=len(batch) > 1))

    def iterate_task_gradients(
        self,
        tasks: Iterable[Task | tuple[Any, ...]],
        *,
        query_weights: Sequence[float] | None = None,
        several: bool = True,
    ) -> Iterator[TaskGradient]:
        """Yield the result of :meth:`task_gradients` task by task, so that only a few gradients are in
        memory.

        Args:
            tasks: the meta-batch, or a part of it.
            query_weights: as in :meth:`forward`.
            several: whether the whole meta-batch has more than one task. Small tasks then run side by side on
                a
                CPU, each with its own threads.
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
        """Return a copy of the network adapted to a support set: ``adapted(x)`` gives logits or predictions.

        The copy is in ``eval()`` mode. Its batch norm uses the statistics of the support set, also in
        ``train()`` mode. So the logits of a query do not depend on other queries, nor on the batch size. To
        normalise queries as one batch, as :meth:`forward` and ``evaluate`` do, use
        ``meta.functional(meta.adapted_params(x, y, steps=5), queries).logits``.

        Args:
            x: inputs of the support set.
            y: its targets; for classes 0..classes-1.
            steps: number of inner steps, which may exceed the trained number; default the trained number.
                ``"auto"`` chooses it by cross-validation on the support set (:meth:`choose_steps`).
        """
        if steps == "auto":
            steps = self.choose_steps(x, y).steps
        params = self.adapted_params(x, y, steps=self.steps if steps is None else steps)
        network = copy.deepcopy(self.network)
        return ignore_mode(adapted_network(network, self.functional.last_linear, params, x))

    def adapted_params(self, x: Inputs, y: Targets, *, steps: int) -> Params:
        """Return the network's parameters after ``steps`` inner steps on a support set, detached."""
        return adapt(self._learner(), x, y, steps=steps).adapted

    def iterate_steps(self, x: Inputs, y: Targets) -> Iterator[Params]:
        """Yield the parameters after 0, 1, 2, ... inner steps on a support set, endlessly; detached."""
        start = self.start_task(x, y)
        yield start.params
        for params, _ in steps_from(start, x, y):
            yield params

    def start_task(self, x: Inputs, y: Targets) -> Learner:
        """Return network and rule with their parameters at θ(0) of a task, detached."""
        return start_task(self._learner(), x, y)

    def choose_steps(self, x: Inputs, y: Targets, *, longest: int = LONGEST_AUTO) -> StepChoice:
        """Return the number of inner steps, at most ``longest``, with the lowest loss on held-out samples.

        Each fold holds out one sample per class. If a class has only one sample, nothing can be held out, and
        the trained number is returned. If the targets are not classes, each fold holds out every fifth
        sample.
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
        """Return λ_max / λ_min of the Gauss-Newton matrix of a support set at the initial parameters.

        Args:
            x: inputs of the support set.
            y: its targets.
            subset: parameters: ``cls``, ``emb``, ``ebn``, ``body``, ``all``, a union such as ``cls+emb``, or
                a list of name patterns.
            residuals: kind of residuals; default the kind of the conditioning loss.
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
        """Return this learner with ``multiplier`` times longer inner steps; it shares all parameters."""
        if multiplier == 1:
            return self
        longer = copy.copy(self)
        longer.rule = scaled(self.rule, multiplier)
        return longer

    def for_classes(self, ways: int) -> MetaLearner:
        """Return the learner for tasks of ``ways`` classes.

        With one row for all classes, or with as many rows as classes, it is this learner. With more rows it
        is a copy with the first rows and the rule's parameters for them. With fewer rows it is an error,
        because nothing was learned for the other classes.
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
        """Return the kind of problem, which determines the metrics: that of the query loss."""
        return self.query_loss.kind

    @property
    def num_classes(self) -> int:
        """Return the number of outputs of the classifier; with a shared row, that of the original network."""
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
        """Return the engine, rebuilt in copies and after a change of attributes: compiled functions cannot be
        copied."""
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
