"""The file format: `program.proto` is its specification, `program_pb2` the generated module."""

from google.protobuf.internal import api_implementation

if api_implementation.Type() == "python":
    raise ImportError(
        "Oarlock needs protobuf's compiled backend; this process uses the pure Python one, which malicious files can exhaust. "
        "Unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION, or install a protobuf wheel for this platform."
    )
