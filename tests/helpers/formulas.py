"""One inner step of every method as a plain formula: slow, dense, and written apart from firststep's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import torch
from torch import Tensor

from reference import Formula, Params, SupportLoss, dense_jacobian

Loss = SupportLoss


def gradient_descent(rate: float) -> Formula:
    return lambda grads, values, rule_params, k, loss: {n: values[n] - rate * grads[n] for n in values}


def meta_sgd(rate: float) -> Formula:
    return lambda grads, values, rule_params, k, loss: {
        n: values[n] - rule_params["rate." + n] * grads[n] for n in values
    }


def meta_curvature(rate: float) -> Formula:
    """Return the whole matrix of a layer, as a Kronecker product, times its flattened gradient."""

    def transformed(name: str, grad: Tensor, rule_params: Params) -> Tensor:
        layer, kind = name.rsplit(".", 1)
        if "norm" in layer or "shortcut.1" in layer:
            return grad
        if kind == "bias":
            return torch.diag(rule_params["bias." + layer]) @ grad
        factors = [
            rule_params[f"{mode}.{layer}"]
            for mode in ("out", "in", "kernel")
            if f"{mode}.{layer}" in rule_params
        ]
        return (reduce(torch.kron, factors) @ grad.reshape(-1)).reshape(grad.shape)

    return lambda grads, values, rule_params, k, loss: {
        n: values[n] - rate * transformed(n, grads[n], rule_params) for n in values
    }


def gap(rate: float) -> Formula:
    """Return Σ_i softplus₂(m_i) u_i u_iᵀ G, with u_i the eigenvectors of G Gᵀ."""

    def transformed(grad: Tensor, m: Tensor) -> Tensor:
        matrix = grad.reshape(len(grad), -1)
        vectors = torch.linalg.eigh(matrix.detach() @ matrix.detach().T).eigenvectors.flip(1)
        scales = torch.log(1 + torch.exp(2 * m)) / 2
        terms = [s * torch.outer(u, u) @ matrix for s, u in zip(scales, vectors.T, strict=False)]
        return sum(terms[1:], terms[0]).reshape(grad.shape)

    return lambda grads, values, rule_params, k, loss: {
        n: values[n]
        - rate * (transformed(grads[n], rule_params["m." + n]) if "m." + n in rule_params else grads[n])
        for n in values
    }


def modgrad(rate: float) -> Formula:
    def vector(name: str, rule_params: Params, context: Tensor) -> Tensor:
        part = {
            key[len(name) + 1 :]: value for key, value in rule_params.items() if key.startswith(name + ".")
        }
        hidden = (part["hidden.weight"] @ context + part["hidden.bias"]).clamp_min(0)
        output = part["mixture.weight"] @ hidden + part["mixture.bias"]
        size = len(hidden)
        shares = output[:5].exp() / output[:5].exp().sum()
        return sum(shares[i] * output[5 + i * size : 5 + (i + 1) * size] for i in range(5))  # type: ignore

    def mask(name: str, shape: torch.Size, rule_params: Params, context: Tensor) -> Tensor:
        if len(shape) == 1:
            return vector(f"b.{name}", rule_params, context).clamp_min(0)
        u, v = vector(f"u.{name}", rule_params, context), vector(f"v.{name}", rule_params, context)
        return (u[:, None] * v[None, :]).clamp_min(0).reshape(shape)

    def formula(grads: Params, values: Params, rule_params: Params, k: int, loss: Loss) -> Params:
        def moved(context: Tensor) -> Params:
            return {
                n: values[n] - rate * mask(n, values[n].shape, rule_params, context) * grads[n]
                for n in values
            }

        zero = torch.zeros(300, dtype=torch.float64, requires_grad=True)
        (towards,) = torch.autograd.grad(loss(moved(zero)), zero, create_graph=True)
        return moved(-towards)

    return formula


def maml_plus_plus(rate: float) -> Formula:
    def formula(grads: Params, values: Params, rule_params: Params, k: int, loss: Loss) -> Params:
        moved = {}
        for name in values:
            if "norm" in name or "shortcut.1" in name:
                rows = rule_params["norm." + name]
                moved[name] = rows[min(k, len(rows) - 1)]
            else:
                rates = rule_params["rate." + name.rsplit(".", 1)[0]]
                moved[name] = values[name] - rates[min(k, len(rates) - 1)] * grads[name]
        return moved

    return formula


def gauss_newton(rate: float) -> Formula:
    """Solve (JᵀJ + λ I) δ = -Jᵀ r, dense in the parameters; λ is 1 % of the mean eigenvalue of J Jᵀ."""

    def formula(grads: Params, values: Params, rule_params: Params, k: int, loss: Loss) -> Params:
        jacobian = dense_jacobian(loss.residuals, values, list(values))
        damping = 0.01 * jacobian.square().sum() / len(jacobian)
        normal = jacobian.T @ jacobian + damping * torch.eye(jacobian.shape[1], dtype=jacobian.dtype)
        step = torch.linalg.solve(normal, jacobian.T @ loss.residuals(values))
        parts = step.split([value.numel() for value in values.values()])
        return {n: values[n] - rate * part.view_as(values[n]) for n, part in zip(values, parts, strict=True)}

    return formula


def momentum(rate: float) -> Formula:
    """Step k is -rate Σ_j 0.9^(k-j) g_j, from the gradients of all steps."""
    past: list[Params] = []

    def formula(grads: Params, values: Params, rule_params: Params, k: int, loss: Loss) -> Params:
        past.append(grads)
        return {n: values[n] - rate * sum(0.9 ** (k - j) * past[j][n] for j in range(k + 1)) for n in values}

    return formula


def adam(rate: float, betas: tuple[float, float] = (0.9, 0.999)) -> Formula:
    """Compute both means as weighted sums over all gradients; the weights sum to 1."""
    past: list[Params] = []

    def mean(values: list[Tensor], beta: float) -> Tensor:
        weights = [beta ** (len(values) - 1 - j) for j in range(len(values))]
        terms = [w / sum(weights) * value for w, value in zip(weights, values, strict=True)]
        return sum(terms[1:], terms[0])

    def formula(grads: Params, values: Params, rule_params: Params, k: int, loss: Loss) -> Params:
        past.append(grads)
        moved = {}
        for n in values:
            first = mean([g[n] for g in past], betas[0])
            second = mean([g[n] ** 2 for g in past], betas[1])
            # A convolution before batch norm has a bias without any gradient: step 0, derivative 0.
            root = torch.where(second > 0, torch.where(second > 0, second, 1.0).sqrt(), 0.0)
            moved[n] = values[n] - rate * first / (root + 1e-8)
        return moved

    return formula


def rmsprop(rate: float) -> Formula:
    return adam(rate, (0.0, 0.99))


def _relu_network(weights: list[Tensor], x: Tensor) -> Tensor:
    first, first_bias, second, second_bias = weights
    return second @ (first @ x + first_bias).clamp_min(0) + second_bias


def _weights(rule_params: Params, prefix: str) -> list[Tensor]:
    layers = [f"{prefix}.{layer}.{kind}" for layer in ("hidden", "out") for kind in ("weight", "bias")]
    return [rule_params[name] for name in layers]


def alfa(rate: float) -> Formula:
    """Return (1 - b β) θ - a α g, with α and β from the means of weights and gradients."""

    def formula(grads: Params, values: Params, rule_params: Params, k: int, loss: Loss) -> Params:
        names = list(values)
        means = [v.sum() / v.numel() for part in (values, grads) for v in (part[n] for n in names)]
        made = _relu_network(_weights(rule_params, "generator"), torch.stack(means))
        moved = {}
        for i, n in enumerate(names):
            rates, decays = rule_params["rate." + n], rule_params["decay." + n]
            last = min(k, len(rates) - 1)
            alpha, beta = made[i] * rates[last], made[len(names) + i] * decays[last]
            moved[n] = (1 - beta) * values[n] - alpha * grads[n]
        return moved

    return formula


def metal(rate: float) -> Formula:
    """Descend cross-entropy plus the mean over samples of an adapted perceptron."""

    def normal(x: Tensor) -> Tensor:
        centred = x - x.sum() / x.numel()
        return centred / ((centred**2).sum() / (x.numel() - 1)).sqrt()

    def formula(grads: Params, values: Params, rule_params: Params, k: int, loss: Loss) -> Params:
        now = {name: value[min(k, len(value) - 1)] for name, value in rule_params.items()}
        logits = loss.logits(values)
        entropy = torch.stack([z.logsumexp(0) - z[y] for z, y in zip(logits, loss.labels, strict=True)])
        state = torch.stack([entropy.mean(), *(v.mean() for v in values.values())])
        made = _relu_network(_weights(now, "adapter"), normal(state))
        learned = [
            w + now["scale"][i] * made[i] * w + now["shift"][i] * made[4 + i]
            for i, w in enumerate(_weights(now, "loss"))
        ]
        rows = []
        for z, y in zip(logits, loss.labels, strict=True):
            hot = torch.eye(len(z), dtype=z.dtype)[y]
            rows.append(torch.cat([state, *(torch.stack(pair) for pair in zip(z, hot, strict=True))]))
        inputs = normal(torch.stack(rows))
        total = entropy.mean() + sum(_relu_network(learned, x)[0] for x in inputs) / len(inputs)
        own = torch.autograd.grad(total, list(values.values()), create_graph=True)
        return {n: v - rate * g for (n, v), g in zip(values.items(), own, strict=True)}

    return formula


FORMULAS: dict[str, Callable[[float], Formula]] = {
    "maml": gradient_descent,
    "fomaml": gradient_descent,
    "anil": gradient_descent,
    "boil": gradient_descent,
    "meta-sgd": meta_sgd,
    "meta-curvature": meta_curvature,
    "modgrad": modgrad,
    "warp-maml": gradient_descent,
    "gap": gap,
    "maml++": maml_plus_plus,
    "gauss-newton": gauss_newton,
    "momentum": momentum,
    "adam": adam,
    "rmsprop": rmsprop,
    "alfa": alfa,
    "metal": metal,
}
