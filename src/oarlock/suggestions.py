"""Names that nothing has: the nearest of those that there are, whatever their case, and where else a name is."""

import difflib
import importlib
import sys
from collections.abc import Iterable
from types import ModuleType

from oarlock.errors import ArgumentError

__all__ = ["did_you_mean", "find_near", "list_names", "no_attribute", "refuse_calls"]

_LISTED = 12  # names in a message
_LIKE = 0.6
_MUCH_ALIKE = 0.75  # what another module has is named only where it is hardly anything else
_SEARCHED = (
    "oarlock",
    "oarlock.layer",
    "oarlock.metric",
    "oarlock.optimizer",
    "oarlock.op",
    "oarlock.layer.initializer",
    "oarlock.datasets",
)


def find_near(name: str, known: Iterable[str]) -> str | None:
    """The one of `known` that is most like `name`, in whatever case; None where none is."""
    return next(iter(_near(name, known, 1)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The hint that names the one of `known` that is most like `name`; None where none is."""
    near = find_near(name, known)
    return f'did you mean "{near}"?' if near else None


def list_names(name: str, known: Iterable[str]) -> str:
    """The first of `known` as text, those that are like `name` before the others, and how many more there are."""
    names = list(dict.fromkeys(known))
    names = list(dict.fromkeys([*_near(name, names, _LISTED), *names]))
    return ", ".join(names[:_LISTED]) + (f", and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


def _near(name: str, known: Iterable[str], count: int, like: float = _LIKE) -> list[str]:
    by_lower: dict[str, list[str]] = {}
    for each in known:
        by_lower.setdefault(each.lower(), []).append(each)
    near = difflib.get_close_matches(name.lower(), by_lower, n=count, cutoff=like)
    return [each for lower in near for each in sorted(by_lower[lower], key=lambda each: each != name)]


def no_attribute(module: str, name: str, known: Iterable[str], *, instead: str | None = None) -> AttributeError:
    """The error for a missing `name` in a module of ours: it says which of the `known` is meant, or of another module, or `instead`."""
    hint = instead or _hint(module, name, known)
    return AttributeError(f"module {module!r} has no attribute {name!r:.80}; {hint}", name=name)


def refuse_calls(package: str) -> None:
    """Let the modules inside `package`, where they are called like what stands in them, raise ArgumentError, which names that."""
    for module in list(vars(sys.modules[package]).values()):  # other threads may import
        if type(module) is ModuleType and module.__name__.startswith(f"{package}."):
            module.__class__ = _Uncalled
            refuse_calls(module.__name__)


class _Uncalled(ModuleType):
    def __call__(self, *arguments: object, **keywords: object) -> object:
        package, _, name = self.__name__.rpartition(".")
        hint = _hint(package, name, _names_of(package))
        raise ArgumentError(f"{_short(self.__name__)} is a module, which cannot be called", hint=hint)


def _hint(module: str, name: str, known: Iterable[str]) -> str:
    return _meant(module, name, known) or f"dir({_short(module)}) lists what there is"


def _meant(module: str, name: str, known: Iterable[str]) -> str | None:
    """The hint that names what is meant; None where that is not known. The same name elsewhere comes before one that is like it here."""
    if name.startswith("_"):  # asked for by Python and by tools, which mean nothing of ours
        return None
    here = [each for each in known if not each.startswith("_")]
    there = {place: _names_of(place) for place in _SEARCHED if place != module}
    near = _near(name, here, 1)
    same = [(place, each) for place, names in [(module, here), *there.items()] for each in names if each.lower() == name.lower()]
    alike = [(place, each) for place, names in there.items() for each in _near(name, names, 1, _MUCH_ALIKE)]
    mine = [(module, near[0])] if near else []
    found = same or sorted(mine + alike, key=lambda each: -difflib.SequenceMatcher(None, each[1].lower(), name.lower()).ratio())
    place, meant = found[0] if found else ("", "")
    return f"did you mean {_short(place)}.{meant}?" if found else None


def _names_of(place: str) -> list[str]:
    """The names that a user may call of a module: what it exports, modules left out."""
    module = importlib.import_module(place)
    names = dir(module) if place == "oarlock.op" else getattr(module, "__all__", ())
    return [name for name in names if not name.startswith("_") and not isinstance(vars(module).get(name), ModuleType)]


def _short(module: str) -> str:
    return module.replace("oarlock", "ol", 1).replace(".compat_2017", "")  # which nobody writes
