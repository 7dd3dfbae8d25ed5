# make demo    train a network on handwritten digits, and print its predictions
# make test    run the short suite of tests in a new environment
# make test-all  run all tests, the slow ones included, in a new environment; half an hour
# make check   check format, lint, types and tests, in the environment for development
# make settings  run the tests under each setting that changes how kernels round; more than an hour
# make coverage  check that the tests take every branch of the code that reads files
# make docs    write the generated reference, then the documents as a site: build/site/index.html
# make dist    build the wheel and the sdist, check them, and run the README from the installed wheel, on each Python from 3.11 found
# make pictures  draw every picture of README.md and of the documents again; ten minutes
# make proto   generate the module of the file format from program.proto

PYTHON ?= python3
# Three processes for two cores: some tests wait for another process or for a time.
IN_PARALLEL = -n 3 --dist worksteal
FORMAT = src/oarlock/proto/program
PIP = pip install --quiet --disable-pip-version-check
# The first pip with dependency groups is 25.1; environments of older Pythons start with an earlier one.
NEW_PIP = "pip>=25.1"

# Byte code is kept, and pip compiles none: Python compiles only the modules that the tests import, once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all check settings coverage format docs dist pictures proto proto-check clean

demo: .venv/installed
	.venv/bin/oarlock train examples/digits.py
	.venv/bin/oarlock infer digits.safetensors --data digits:test

test: .venv-test/new
	.venv-test/bin/python -m pytest --short $(IN_PARALLEL)

test-all: .venv-test/new
	.venv-test/bin/python -m pytest -m "slow or not slow" $(IN_PARALLEL)

.PHONY: .venv-test/new
.venv-test/new:
	rm -rf .venv-test
	$(PYTHON) -m venv .venv-test
	.venv-test/bin/$(PIP) $(NEW_PIP)
	.venv-test/bin/$(PIP) --no-compile -c constraints.txt -e . --group dev

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
	.venv/bin/$(PIP) $(NEW_PIP)
	.venv/bin/$(PIP) -c constraints.txt -e ".[datasets]"
	touch $@

.venv/developing: .venv/installed
	.venv/bin/$(PIP) -c constraints.txt -e . --group dev
	touch $@

.venv/documenting: .venv/installed
	.venv/bin/$(PIP) -c constraints.txt -e . --group docs
	touch $@

# Always from scratch: Sphinx repeats the warnings only of pages that it reads again.
docs: .venv/documenting
	.venv/bin/python docs/generate.py
	.venv/bin/python -m sphinx -W --keep-going --fresh-env --quiet -c docs -d build/doctrees . build/site

.venv-dist/installed: pyproject.toml
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/$(PIP) $(NEW_PIP)
	.venv-dist/bin/$(PIP) --group release
	touch $@

dist: .venv-dist/installed
	rm -rf dist
	.venv-dist/bin/python -m build --outdir dist
	.venv-dist/bin/python -m twine check --strict dist/*
	.venv-dist/bin/python tools/check_dist.py dist

pictures: .venv/installed
	.venv/bin/python docs/pictures/make.py

# The generated module comes from the oldest protobuf of the supported range: 1.74.0 carries protoc 6.31.1.
.venv-proto/installed:
	$(PYTHON) -m venv .venv-proto
	.venv-proto/bin/$(PIP) grpcio-tools==1.74.0
	touch $@

proto: .venv-proto/installed
	.venv-proto/bin/python -m grpc_tools.protoc -Isrc --python_out=src --pyi_out=src oarlock/proto/program.proto

proto-check: .venv-proto/installed
	mkdir -p build/proto
	.venv-proto/bin/python -m grpc_tools.protoc -Isrc --python_out=build/proto --pyi_out=build/proto oarlock/proto/program.proto
	cmp build/proto/oarlock/proto/program_pb2.py $(FORMAT)_pb2.py
	cmp build/proto/oarlock/proto/program_pb2.pyi $(FORMAT)_pb2.pyi

clean:
	rm -rf .venv .venv-test .venv-proto .venv-dist build dist digits.safetensors
