"""Size limits for files.

The defaults suit untrusted files. Callers raise them by passing `Limits(ops=1_000_000)`; files cannot.
"""

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Size limits, in bytes unless the name says otherwise. `docs/reference/language.md` defines each one."""

    program_bytes: int = 64 * 2**20
    file_bytes: int = 4 * 2**30
    header_bytes: int = 8 * 2**20
    messages: int = 1_000_000
    texts: int = 1_000_000
    blocks: int = 4_096
    depth: int = 32
    vars: int = 200_000
    ops: int = 100_000
    arguments: int = 1_000_000
    attributes_per_op: int = 64
    text_bytes: int = 64 * 2**10
    location_text_bytes: int = 2**10
    location_bytes: int = 64 * 2**20
    list_items: int = 65_536
    symbol_bytes: int = 256 * 2**10
    rank: int = 16
    size: int = 2**31 - 1
    elements: int = 2**31 - 1
    tensor_bytes: int = 2**30
    parameter_bytes: int = 4 * 2**30
