"""Values, scopes and the execution of programs."""

from oarlock.runtime.block_run import run_block
from oarlock.runtime.budget import RunLimits
from oarlock.runtime.context import Context
from oarlock.runtime.executor import Executor
from oarlock.runtime.initialization import init
from oarlock.runtime.place import CPUPlace, GPUPlace, Place
from oarlock.runtime.process import ProcessSettings, configure_process
from oarlock.runtime.ragged import Ragged
from oarlock.runtime.scope import Scope
from oarlock.runtime.step import Step
from oarlock.runtime.value_check import infer_shape
from oarlock.runtime.variable import State, Variable
from oarlock.suggestions import suggest_names

__all__ = [
    "CPUPlace",
    "Context",
    "Executor",
    "GPUPlace",
    "Place",
    "ProcessSettings",
    "Ragged",
    "RunLimits",
    "Scope",
    "State",
    "Step",
    "Variable",
    "configure_process",
    "infer_shape",
    "init",
    "run_block",
]

suggest_names(__name__)
