# make demo    learn to read handwritten digits, and read some
# make test    a fresh environment, then the tests
# make check   format, lint, types and tests, in the environment that development uses
# make settings  the tests under each setting that changes how kernels round; more than an hour
# make coverage  every branch of what reads files, taken by its tests
# make docs    write the generated reference, then the documents as a site: build/site/index.html
# make pictures  every picture of README.md and of the documents, made again; ten minutes
# make proto   remake the module of the file format from program.proto

PYTHON ?= python3
# Three processes of tests for two processors: some wait, for another process or for time to pass.
IN_PARALLEL = -n 3 --dist worksteal
FORMAT = src/oarlock/proto/program

# Byte code is kept: of what pip installs for the tests, Python compiles what is imported alone, and once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check settings coverage format docs pictures proto proto-check clean

demo: .venv/installed
	.venv/bin/oarlock train examples/digits.py
	.venv/bin/oarlock infer digits.safetensors --data digits:test

test:
	rm -rf .venv-test
	$(PYTHON) -m venv .venv-test
	.venv-test/bin/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e ".[dev]"
	.venv-test/bin/python -m pytest $(IN_PARALLEL)

check: .venv/developing
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/pyright --pythonpath .venv/bin/python
	.venv/bin/python -m pytest $(IN_PARALLEL)

settings: .venv/developing
	PYTHONPATH=src:tests .venv/bin/python -m settings

coverage: .venv/developing
	.venv/bin/python -m coverage run -m pytest tests/ir tests/proto tests/registry tests/passes/test_pruning.py tests/passes/test_prune_and_eval.py tests/layer/test_program_joined.py tests/net/test_blocks_that_run.py tests/runtime/test_budget.py tests/io/test_known_attacks.py
	.venv/bin/python -m coverage report

format: .venv/developing
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[datasets]"
	touch $@

.venv/developing: .venv/installed
	.venv/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

.venv/documenting: .venv/installed
	.venv/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@

# From nothing each time: pages that are not read again warn of nothing.
docs: .venv/documenting
	.venv/bin/python docs/generate.py
	.venv/bin/python -m sphinx -W --keep-going --fresh-env --quiet -c docs -d build/doctrees . build/site

pictures: .venv/installed
	.venv/bin/python docs/pictures/make.py

# The generated module comes from the oldest protobuf of the supported range: 1.74.0 carries protoc 6.31.1.
.venv-proto/installed:
	$(PYTHON) -m venv .venv-proto
	.venv-proto/bin/pip install --quiet --disable-pip-version-check grpcio-tools==1.74.0
	touch $@

proto: .venv-proto/installed
	.venv-proto/bin/python -m grpc_tools.protoc -Isrc --python_out=src --pyi_out=src oarlock/proto/program.proto

proto-check: .venv-proto/installed
	mkdir -p build/proto
	.venv-proto/bin/python -m grpc_tools.protoc -Isrc --python_out=build/proto --pyi_out=build/proto oarlock/proto/program.proto
	cmp build/proto/oarlock/proto/program_pb2.py $(FORMAT)_pb2.py
	cmp build/proto/oarlock/proto/program_pb2.pyi $(FORMAT)_pb2.pyi

clean:
	rm -rf .venv .venv-test .venv-proto build digits.safetensors
