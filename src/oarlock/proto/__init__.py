"""The file format: `program.proto` is its specification, `program_pb2` the module generated from it."""

from google.protobuf.internal import api_implementation

if api_implementation.Type() == "python":
    raise ImportError(
        "Oarlock needs protobuf's compiled backend; this process runs the one in pure Python, which a file can exhaust. "
        "Unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION, or install a protobuf wheel made for this platform."
    )
