"""The file format: `program.proto` is its specification, `program_pb2` the module generated from it."""
