"""The areas of the reference: a page each, with the packages that it covers and the ten names to start with."""

from dataclasses import dataclass

__all__ = ["AREAS", "FIRST", "Area"]


@dataclass(frozen=True)
class Area:
    """A page of public names. `packages` are all covered by it, except the names that have entries on another page."""

    title: str
    about: str
    packages: tuple[str, ...]
    first: tuple[str, ...]


AREAS = {
    "programs": Area(
        "Programs",
        "A program is data: blocks of ops that define variables. [The language](language.md) specifies its text and file format.",
        ("oarlock.ir", "oarlock.drawing", "oarlock.proto"),
        (
            "ol.Program",
            "ol.Var",
            "ol.Block",
            "ol.DType",
            "ol.default_program",
            "ol.draw",
            "ol.diff_programs",
            "ol.content_hash",
            "ol.ir.Op",
            "ol.Limits",
        ),
    ),
    "inputs_and_blocks": Area(
        "Inputs, parameters, loops and branches",
        "The functions of `ol.layer` that declare inputs and parameters, and those that write blocks: "
        "[control flow](../guides/control_flow.md). All other layers are in [layers](layers.md).",
        ("oarlock.layer", "oarlock.layer.initializer"),
        (
            "ol.layer.data",
            "ol.layer.create_parameter",
            "ol.layer.ParameterOptions",
            "ol.initializer.he_normal",
            "ol.cond",
            "ol.switch_case",
            "ol.while_loop",
            "ol.rnn",
            "ol.ifelse",
            "ol.summary",
        ),
    ),
    "training": Area(
        "Training and metrics",
        "[Runs](../guides/runs.md), [metrics](../guides/metrics.md) and [watching a run](../guides/logging.md) show how they are used.",
        ("oarlock.training", "oarlock.training.loggers", "oarlock.metric"),
        (
            "ol.train",
            "ol.TrainingResult",
            "ol.evaluate",
            "ol.settings",
            "ol.training.EarlyStopping",
            "ol.training.plot",
            "ol.training.RunRecord",
            "ol.training.loggers.Logger",
            "ol.metric.accuracy",
            "ol.metric.f1",
        ),
    ),
    "running": Area(
        "Running programs",
        "Executors, scopes, places and profiles. [Practice](../guides/practice.md) has whole programs, "
        "[scopes](../guides/scopes.md) the rules of values.",
        ("oarlock.runtime", "oarlock.profiling"),
        (
            "ol.Executor",
            "ol.Scope",
            "ol.init",
            "ol.Step",
            "ol.runtime.Variable",
            "ol.Ragged",
            "ol.GPUPlace",
            "ol.configure_process",
            "ol.profile",
            "ol.RunLimits",
        ),
    ),
    "data": Area(
        "Data",
        "[Data](../guides/data.md) shows how it is read; [data sets](datasets.md) lists the named ones.",
        ("oarlock.data", "oarlock.datasets"),
        (
            "ol.data.read",
            "ol.datasets.load",
            "ol.datasets.descriptions",
            "ol.data.Table",
            "ol.data.ImageFolder",
            "ol.data.Columns",
            "ol.data.Stream",
            "ol.data.Source",
            "ol.datasets.Description",
            "ol.datasets.Vocabulary",
        ),
    ),
    "models": Area(
        "Models: save, load, import and export",
        "[Weights](../guides/weights.md), [from PyTorch](../guides/from_pytorch.md) and [to and from ONNX](../guides/to_onnx.md) "
        "show how they are used.",
        ("oarlock.io", "oarlock.interop", "oarlock.inference", "oarlock.cli"),
        (
            "ol.save_model",
            "ol.load_model",
            "ol.infer",
            "ol.Model",
            "ol.from_torch",
            "ol.to_torch_state",
            "ol.load_weights",
            "ol.to_onnx",
            "ol.from_onnx",
            "ol.run_untrusted",
        ),
    ),
    "passes": Area(
        "Gradients and other rewrites of programs",
        "[Precision and memory](../guides/precision_and_memory.md) and [several workers](../guides/workers.md) show how they are used.",
        ("oarlock.passes",),
        (
            "ol.gradients",
            "ol.append_backward",
            "ol.prune",
            "ol.passes.mixed_precision",
            "ol.passes.recompute",
            "ol.passes.quantize",
            "ol.passes.data_parallel",
            "ol.passes.tensor_parallel",
            "ol.passes.shard_optimizer",
        ),
    ),
    "custom_operators": Area(
        "Custom operators",
        "[Adding an operator](../guides/add_an_operator.md) declares one step by step.",
        ("oarlock.registry", "oarlock.testing"),
        (
            "ol.operator",
            "ol.registry.Operator",
            "ol.Case",
            "ol.GradCheck",
            "ol.Rejects",
            "ol.testing.check_operator",
            "ol.registry.Catalogue",
            "ol.registry.fused_backward",
            "ol.registry.append_op",
            "ol.registry.typecheck",
        ),
    ),
    "spellings_of_2017": Area(
        "Spellings of 2017",
        "Names of the design documents of 2017, which work as they are written there; [from 2017](../guides/from_2017.md) has the table.",
        (
            "oarlock.compat_2017",
            "oarlock.compat_2017.net",
            "oarlock.compat_2017.framework",
            "oarlock.compat_2017.cpp",
            "oarlock.compat_2017.scope",
            "oarlock.compat_2017.variable",
        ),
        (
            "ol.eval",
            "ol.Net",
            "ol.NetBuilder",
            "ol.scope.guard",
            "ol.scope.current",
            "ol.framework.create_operation",
            "ol.variable.new",
            "ol.variable.tensor",
            "ol.cpp.operator",
            "ol.cpp.variable",
        ),
    ),
}
"""The areas by the name of their page. oarlock.op, oarlock.errors and oarlock.optimizer have other pages."""

FIRST = {
    "operators": (
        "ol.op.add",
        "ol.op.matmul",
        "ol.op.relu",
        "ol.op.softmax",
        "ol.op.reduce_sum",
        "ol.op.mean",
        "ol.op.reshape",
        "ol.op.concat",
        "ol.op.gather",
        "ol.op.where",
    ),
    "compositions": (
        "ol.op.cross_entropy",
        "ol.op.binary_cross_entropy_with_logits",
        "ol.op.mse_loss",
        "ol.op.einsum",
        "ol.op.squeeze",
        "ol.op.unsqueeze",
        "ol.op.masked_fill",
        "ol.op.index_select",
        "ol.op.standard_deviation",
        "ol.op.normalize",
    ),
    "layers": (
        "ol.layer.fc",
        "ol.layer.conv2d",
        "ol.layer.embedding",
        "ol.layer.lstm",
        "ol.layer.multi_head_attention",
        "ol.layer.transformer_encoder",
        "ol.layer.batch_norm",
        "ol.layer.layer_norm",
        "ol.layer.dropout",
        "ol.layer.cross_entropy",
    ),
    "optimizers": (
        "ol.optimizer.AdamW",
        "ol.optimizer.Adam",
        "ol.optimizer.SGD",
        "ol.optimizer.Momentum",
        "ol.optimizer.RMSProp",
        "ol.optimizer.Groups",
        "ol.optimizer.ClipByGlobalNorm",
        "ol.optimizer.schedule.WarmUp",
        "ol.optimizer.schedule.CosineDecay",
        "ol.optimizer.schedule.ReduceOnPlateau",
    ),
}
"""The ten names that the other pages begin with."""
