"""A file in parts, so that one part may be spoiled and the rest stay right: written here from docs/reference/language.md alone."""

import hashlib
import json
from dataclasses import dataclass, field

from oarlock.proto import program_pb2 as wire

__all__ = ["Draft", "Tensor"]

Tensor = tuple[str, list[int], bytes]  # dtype as safetensors spells it, shape, bytes


@dataclass
class Draft:
    """A program's message and tensors. Whatever is set beside them stands in for what would follow from them."""

    program: wire.ProgramFile
    tensors: dict[str, Tensor]
    program_bytes: bytes | None = None
    header: dict[str, object] = field(default_factory=dict)  # entries that replace or join those of the header
    header_text: bytes | None = None
    header_length: int | None = None
    digest: str | None = None
    tail: bytes = b""

    def serialized(self) -> bytes:
        return self.program.SerializeToString(deterministic=True) if self.program_bytes is None else self.program_bytes

    def to_bytes(self) -> bytes:
        """The file: length, header, tensors."""
        program = self.serialized()
        tensors = self.tensors | {"oarlock.program": ("U8", [len(program)], program)}
        digest = hashlib.sha256()
        entries: dict[str, object] = {}
        body = b""
        for name in sorted(tensors):
            dtype, shape, data = tensors[name]
            digest.update(json.dumps([name, dtype, shape, len(data)]).encode() + data)
            entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
            body += data
        entries["__metadata__"] = {"oarlock": f"1 {self.digest or digest.hexdigest()}"}
        header = json.dumps(entries | self.header).encode() if self.header_text is None else self.header_text
        header += b" " * (-len(header) % 8)
        length = len(header) if self.header_length is None else self.header_length
        return length.to_bytes(8, "little") + header + body + self.tail
