"""The faults: places in the package, and what to put there."""

from typing import NamedTuple

__all__ = ["FAULTS", "VERIFIER", "Fault"]

VERIFIER = (
    "proto",
    "ir/test_verification.py",
    "ir/test_initializer.py",
    "ir/test_serialization.py",
    "registry/test_typecheck.py",
    "registry/test_value_sizes.py",
    "runtime/test_budget.py",
    "io/test_known_attacks.py",
)


class Fault(NamedTuple):
    """A place in a file of the package, what to put there, and the tests that should notice."""

    file: str
    text: str
    instead: str
    tests: tuple[str, ...] = VERIFIER


VERIFY, BOUNDS, SERIALIZE = "ir/verification.py", "ir/bounds.py", "ir/serialization.py"
CHECKING, PRESCAN, INITIALIZER, BUDGET = "registry/type_check.py", "proto/prescan.py", "ir/initializer.py", "runtime/budget.py"
OWN_SIZES = "registry/value_sizes.py"

RULES: list[tuple[str, str, str]] = [
    # the verifier
    (VERIFY, "    verify_names(program)\n", ""),
    (VERIFY, "        if block.path in paths:", "        if False:"),
    (VERIFY, "isinstance(size, int) and size < 0", "isinstance(size, int) and size < -1"),
    (VERIFY, "if isinstance(size, str) and not is_symbol(size):\n            raise", "if False:\n            raise"),
    (VERIFY, "(block.parent is not None or is_input)", "block.parent is not None"),
    (VERIFY, "var.shape is None or any(isinstance(size, str) for size in var.shape)", "var.shape is None"),
    (VERIFY, "if var.parameter and not var.persistable:", "if False:"),
    (VERIFY, "if var.trainable and not var.parameter:", "if False:"),
    (VERIFY, "if is_input and block.parent is None and var.shape is None:", "if False:"),
    (VERIFY, "not (is_input and block.parent is None)", "not is_input"),
    (VERIFY, "if inner.parent is not block or inner in owned:", "if inner in owned:"),
    (VERIFY, "if inner.parent is not block or inner in owned:", "if inner.parent is not block:"),
    (VERIFY, "        if block not in owned:", "        if False:"),
    (VERIFY, "if len(set(block.inputs)) != len(block.inputs):", "if False:"),
    (
        VERIFY,
        "if var.block not in around or var not in defined:\n                raise",
        "if var.block not in around:\n                raise",
    ),
    (VERIFY, "            if block.find_var(var.name) is not var:\n", "            if False:\n"),
    (VERIFY, "missing = captured - set(op.reads)", "missing = set()"),
    (VERIFY, "captured |= {var for var in inner.outputs if var.block in around}", "pass"),
    (VERIFY, "            yield inner\n", "            yield from ()\n"),
    (VERIFY, "if var.block is not block or var.persistable:", "if var.block is not block:"),
    (VERIFY, "if var.block is not block or var.persistable:", "if var.persistable:"),
    (VERIFY, "        if var in defined:\n", "        if False:\n"),
    (VERIFY, "        defined.add(var)\n", ""),
    (VERIFY, "    for var in block.outputs:\n", "    for var in ():\n"),
    (VERIFY, "if op.is_commit and op not in tail:", "if False:"),
    (VERIFY, "or var in written or", "or"),
    (VERIFY, "or op.reads[0].persistable:", "or False:"),
    (VERIFY, "if program.main.outputs:", "if False:"),
    (VERIFY, "if program.training and not program.training.batch_size:", "if False:"),
    (VERIFY, "if var.op is None and not var.persistable and var not in inputs:", "if False:"),
    # what is checked of operators
    (CHECKING, "    verify_initializers(program)\n", ""),
    (CHECKING, "if name not in known:", "if False:"),
    (CHECKING, "if not known[name].variadic and len(vars) != 1:", "if False:"),
    (CHECKING, "if slot.name not in given and not slot.optional:", "if False:"),
    (CHECKING, "if list(given) != [slot.name for slot in slots if slot.name in given]:", "if False:"),
    (CHECKING, "if converted != op.attributes or any(", "if any("),
    (CHECKING, "        if len(expected) != len(vars):", "        if False:"),
    (CHECKING, "if declared.dtype is not inferred.dtype:", "if False:"),
    (CHECKING, "    if not fits:", "    if False:"),
    (CHECKING, "isinstance(size, str) and names_in(size) == {size} and ", ""),
    (CHECKING, "isinstance(size, str) and names_in(size) == {size} and ", "isinstance(size, str) and "),
    (CHECKING, "made.setdefault(size, (follows, var))[0] == follows", "made.setdefault(size, (follows, var))"),
    # what is checked of sizes that only values tell
    (
        CHECKING,
        "    verify_value_sizes(program, catalogue, check_blocks(program.blocks, catalogue))",
        "    check_blocks(program.blocks, catalogue)",
    ),
    (OWN_SIZES, "if name in known or name in self.makers", "if name in self.makers"),
    (OWN_SIZES, "if name in known or name in self.makers or", "if name in known or"),
    (OWN_SIZES, "        known = around | _names(block.inputs)", "        known = set(around)"),
    (OWN_SIZES, "            known |= _names(op.writes)", "            pass"),
    (OWN_SIZES, "if name in sizes.checked:", "if True:"),
    (OWN_SIZES, "        if source in found or", "        if True or source in found or"),
    (OWN_SIZES, "            self._require_inside(several)", "            pass"),
    (CHECKING, "    except Exception as error:", "    except AttributeError as error:"),
    (INITIALIZER, "if name not in wanted:", "if False:"),
    (INITIALIZER, "if type(attributes[name]) is not wanted[name]:", "if False:"),
    (INITIALIZER, "not low <= int(value) <= high", "False"),
    (INITIALIZER, "if len(data) != expected:", "if False:"),
    # what is checked of bytes and messages
    (PRESCAN, "if field.once in seen:", "if False:"),
    (PRESCAN, "if kind not in field.wire_types:", "if False:"),
    (PRESCAN, "if length > end - at:", "if False:"),
    (PRESCAN, "                if messages > limits.messages:", "                if False:"),
    (PRESCAN, "            if texts > limits.texts:", "            if False:"),
    (PRESCAN, "if field.name == _VERSION and value not in versions:", "if False:"),
    (BOUNDS, 'bounds.require(f"block {index}: ", depths[-1], "depth")', "pass"),
    (BOUNDS, "if not is_name(name):", "if False:"),
    (BOUNDS, "elements *= max(size.number, 1)", "elements = max(size.number, 1)"),
    (BOUNDS, "            self.parameter_bytes += count\n", "            self.parameter_bytes = count\n"),
    (BOUNDS, 'self.require(where, self.symbol_bytes, "symbol_bytes")', "pass"),
    (SERIALIZE, "    prescan(data, limits, versions=_READ)\n", ""),
    (SERIALIZE, "item.parent > max(index - 1, 0)", "item.parent > index"),
    (SERIALIZE, "if len(slots[-1]) != len(messages):", "if False:"),
    (SERIALIZE, "        if item.name in attributes:", "        if False:"),
    (SERIALIZE, "if len(attributes) != len(desc.attributes):", "if False:"),
    (SERIALIZE, "if item.block >= len(block.program.blocks):", "if False:"),
    (BUDGET, "if self.ops > self.limits.ops:", "if False:"),
    (BUDGET, "if count > self.limits.trips:", "if False:"),
    (BUDGET, "if self.live_bytes + more > self.limits.live_bytes:", "if False:"),
]
"""Rules of the verifier: (file, the text to replace, the text in its place)."""

ELSEWHERE = [
    Fault("passes/fusion/multi_tensor.py", "tuple(sorted(op.attributes.items())), ", "", ("passes/test_updates.py",)),
    Fault(
        "passes/commute_gather_matmul.py", 'scatter.inputs["like"][0] is not self.table or ', "", ("passes/test_commute_gather_matmul.py",)
    ),
    Fault("passes/loop_retiming.py", " or number_of(each.initial) != 0.0:", ":", ("passes/test_loop_retiming.py",)),
    Fault("passes/splat_propagation.py", ' or op.attributes.get("axis") is not None', "", ("passes/test_splat_propagation.py",)),
    Fault(
        "passes/batch_epilogue.py",
        "(*layout.steps, *layout.stacked) if is_among(inner, inside)}",
        "(*layout.steps, *layout.stacked)}",
        ("passes/test_batch_epilogue.py", "passes/test_steps.py"),
    ),
    Fault(
        "runtime/plan/liveness.py",
        "self._end.update((value, number) for value in op.attributes.values() if isinstance(value, Var))",
        "pass",
        ("runtime/test_uneven_stacks.py",),
    ),
    Fault(
        "runtime/plan/buffer_assignment.py",
        "result.shape == source.shape and self.is_even(source)",
        "result.shape == source.shape",
        ("runtime/test_uneven_stacks.py",),
    ),
    Fault(
        "runtime/feed.py",
        "_bad_splits(var, tensor) or _disagreement(var, var.row_splits_of, int(tensor[-1]), sizes)",
        "_bad_splits(var, tensor)",
        ("runtime/test_ragged_feeding.py", "runtime/test_ragged.py"),
    ),
    Fault("io/container.py", ".cpu().contiguous()) for name", ".cpu()) for name", ("io/test_replacing.py",)),
    Fault("io/atomic_write.py", "            os.unlink(temporary)\n    ", "            pass\n    ", ("io/test_replacing.py",)),
    Fault("io/atomic_write.py", "    except BaseException:", "    except Exception:", ("io/test_replacing.py",)),
    Fault("runtime/preparation.py", "        self._require_stored(context)\n", "", ("runtime/test_declaration_check.py",)),
    Fault(
        "registry/value_checks.py",
        "def may_skip_checks(",
        "def may_skip_checks(*_):\n    return True\n\n\ndef _may_skip_checks(",
        ("op/test_own_values.py",),
    ),
    Fault(
        "runtime/plan/preconditions.py",
        "        for check, names in emitter.catalogue.get(op.type).preconditions.items():",
        "        for check, names in ():",
        ("runtime/test_failing_updates.py",),
    ),
    Fault("passes/pruning.py", " or (drawing and op.writes[0].name == DRAWS)]", "]", ("passes/test_pruning.py",)),
    Fault("passes/pruning.py", "if op.reads[0].op in needed or (drawing", "if (drawing", ("passes/test_pruning.py",)),
    Fault(
        "passes/pruning.py",
        "layout.summed = [pair for pair in layout.summed if pair[1] in wanted]",
        "pass",
        ("passes/test_pruning.py",),
    ),
    Fault(
        "passes/pruning.py",
        "            alive = _alive(layout, wanted)\n        if",
        "            pass\n        if",
        ("passes/test_pruning.py",),
    ),
    Fault(
        "compat_2017/net/network.py",
        "            if not var.persistable or scope.find_var(var.name) is None:\n",
        "            if scope.find_local_var(var.name) is not None:\n                scope.erase(var.name)\n            if True:\n",
        ("compat_2017/net/test_network.py",),
    ),
    Fault("op/batch_normalization.py", "if not context.training or not count:", "if not count:", ("runtime/test_seeds_of_scope.py",)),
    Fault(
        "layer/control/if_else.py",
        "return levels if size == length else []",
        "return levels[-1:]",
        ("layer/test_ragged_rows_in_ifelse.py",),
    ),
]
"""The faults that happened once, or could without a test that noticed."""

OBLIGATIONS = [
    ("runtime/preparation.py", "        if self._fed_checks:\n            self._check_sizes(tensors)\n", ""),
    ("runtime/preparation.py", "        if shapes in self._fitting:\n", "        if self._fitting:\n"),
    ("runtime/interpreter.py", "            check_sizes(op, self.catalogue, given)\n", ""),
    ("runtime/plan/emitter.py", "                calls.check_sizes(self, op)\n", ""),
    ("registry/size_check.py", "    for op in walk_ops(ops):\n", "    for op in ops:\n"),
    ("registry/size_check.py", "        if shapes in self._accepted:\n", "        if self._accepted:\n"),
    ("registry/size_check.py", "        if exists and _find_fault(", "        if not exists and _find_fault("),
    ("registry/value_checks.py", " or leaves_sizes_to_values(operator, op)", ""),
    ("registry/signature.py", "        binding.is_proved = False\n        return a if", "        return a if"),
    ("registry/signature.py", "            binding.is_proved = False\n            sizes.append", "            sizes.append"),
    ("registry/inference.py", "    if operator.forward is not None:\n        require_forward_shapes(operator, given, attributes)\n", ""),
    ("registry/arguments.py", "if front != common}", "if False}"),
    ("passes/fusion/multi_tensor.py", " and not has_obligations(catalogue.get(op.type), op):", ":"),
    ("ir/size.py", "    if all(coefficient * rest > 0 for coefficient in difference.values()):\n        return False\n", ""),
]
"""Faults in the checks of sizes that names do not prove."""

FAULTS = [
    *(Fault(*rule) for rule in RULES),
    *ELSEWHERE,
    *(Fault(*rule, ("runtime/test_size_checks.py",)) for rule in OBLIGATIONS),
]
