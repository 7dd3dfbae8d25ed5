"""The scopes of one finished run, as a tree addressed by path."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from oarlock.errors import ArgumentError, ScopeError
from oarlock.ir.location import here
from oarlock.runtime.scope import Scope

__all__ = ["Scopes"]


@dataclass(frozen=True)
class Scopes:
    """The scopes of a run with `keep_scopes`: its frame, `main`, and all scopes nested in it.

    `scopes["main/rnn_0/3"]` is the Scope of iteration 3 of a loop, `scopes["main/rnn_0/3"]["z"]` a value in it. A loop adds two levels, the
    loop and its iterations; a branch adds one. Iterating yields the paths, parents first, in order of execution; printing shows the tree.
    Drop the scopes when done: use a `with` block, or call `drop()`.
    """

    frame: Scope

    def __getitem__(self, path: str) -> Scope:
        """Return the scope at `path`.

        Raises ScopeError, with the nearest paths, if there is none or the scopes were dropped, and ArgumentError if `path` is not a str.
        """
        if not isinstance(path, str):
            raise ArgumentError(
                f"scopes are looked up by path (str), not {type(path).__name__}: {path!r:.60}",
                location=here(),
                hint='scopes["main/rnn_0/3"] is iteration 3 of a loop; list(scopes) returns all paths',
            )
        if self.frame.dropped:
            raise ScopeError(f'"{path}": these scopes were dropped')
        found = self._find(path)
        if found is None:
            near = difflib.get_close_matches(path, self, n=3, cutoff=0.0)
            around, _, name = path.rpartition("/")
            scope = self._find(around)
            is_variable = scope is not None and scope.find_local_var(name) is not None
            raise ScopeError(
                f'"{path}" is not a scope of this run',
                given=[f"nearest: {', '.join(near)}"],
                hint=f'it is a variable: scopes["{around}"]["{name}"]' if is_variable else None,
            )
        return found

    def _find(self, path: str) -> Scope | None:
        scope: Scope | None = self.frame
        first, *others = path.split("/")
        if first != self.frame.name or self.frame.dropped:
            return None
        for name in others:
            scope = next((child for child in scope.children if child.name == name), None) if scope is not None else None
        return scope

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._find(path) is not None

    def __iter__(self) -> Iterator[str]:
        return (path for path, _, _ in self._walk())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __str__(self) -> str:
        lines = [(f"{branches}{scope.name}", len(scope)) for _, branches, scope in self._walk()]
        width = max((len(text) for text, _ in lines), default=0)
        return "\n".join(f"{text:<{width}}   {count} variable{'' if count == 1 else 's'}" if count else text for text, count in lines)

    def _walk(self) -> Iterator[tuple[str, str, Scope]]:
        """Yield each scope with its path and the tree branches drawn before its name."""
        pending = [] if self.frame.dropped else [(self.frame.name, "", "", self.frame)]
        while pending:
            path, drawn, margin, scope = pending.pop()
            yield path, drawn, scope
            last = scope.children[-1:]
            for child in reversed(scope.children):
                is_last = child in last
                corner, below = ("└── ", "    ") if is_last else ("├── ", "│   ")
                pending.append((f"{path}/{child.name}", margin + corner, margin + below, child))

    def drop(self) -> None:
        """Release all values. Calling it twice has no effect."""
        self.frame.drop()

    def __enter__(self) -> "Scopes":
        return self

    def __exit__(self, *exception: object) -> None:
        self.drop()
