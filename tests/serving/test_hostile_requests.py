"""Requests that are made to take memory and time: each is answered soon, within bounds, and the server answers others meanwhile."""

import asyncio
import contextlib
import json
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from serving.asking import Answered, Asker, model_of, serve_here
from serving.running import Running, read_answer, serving
from serving_load.hostile import KINDS, Hostile, hostile_model, send

import oarlock as ol
from oarlock.serving.tensors import json_pieces, nested_json_pieces, raw_pieces, to_json, to_raw

INFER = "/v2/models/m/infer"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(hostile_model(tmp_path_factory.mktemp("served"))) as running:
        yield running
        assert running.errors == []


def rows(count: int, width: int = 0, **more: Any) -> bytes:
    """A request whose tensor has no elements."""
    return json.dumps({"inputs": [{"name": "x", "shape": [count, width], "datatype": "FP32", "data": []}], **more}).encode()


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (Hostile(INFER, rows(200_000_000)), 413),
        (Hostile(INFER, rows(60_000_000, parameters={"binary_data_output": True})), 413),
        (Hostile(INFER, rows(1_000_000)), 200),
        (Hostile("/infer", b'{"x": [' + b"[]," * 499_990 + b"[]]}"), 200),
        (Hostile("/infer", b'{"x": [' + b"[]," * 5_000_000 + b"[]]}"), 413),
        (Hostile(INFER, b'{"inputs": [' + b"[]," * 5_000_000 + b"[]]}"), 413),
        (Hostile("/infer", b'{"' + b"a" * 15_000_000 + b'": 1}'), 400),
        pytest.param(Hostile("/infer", b'{"x": [[' + b"1.2345678," * 190_000 + b"1]]}"), 413, marks=pytest.mark.slow),
        (Hostile("/infer", b'{"x": [[' + b"1.2345678," * 20_000 + b"1]]}"), 200),
        (Hostile(INFER, b'{"inputs": [' + b'{"name":"x","shape":[0],"datatype":"FP32","data":[]},' * 99_999 + b"{}]}"), 400),
    ],
    ids=["rows", "rows as bytes", "a million rows", "lists", "more lists", "lists of tensors", "a name", "an answer", "numbers", "tensors"],
)  # fmt: skip
def test_a_request_that_is_made_to_take_much_is_answered_soon_and_takes_little(server, request_, status):
    seen = send(server, request_)
    assert seen.faults == []
    assert seen.status == status


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_requests_of_each_kind(server, kind):
    draw = random.Random(kind)
    for _ in range(2):
        request = KINDS[kind](draw, draw.choice([1000, 200_000]))
        assert send(server, request).faults == [], request.body[:200]


def test_a_version_of_http_that_there_is_not_is_refused(server):
    for version, expected in [("9.9", 400), ("0.9", 400), ("2.0", 400), ("1.1", 200), ("1.0", 200)]:
        with server.connect() as connection:
            connection.sendall(f"GET /v2 HTTP/{version}\r\nHost: localhost\r\n\r\n".encode())
            status, _, body = read_answer(connection)
            assert status == expected, body
    assert server.ask("GET", "/v2/health/live") == (200, {"live": True})


def test_a_client_that_does_not_read_a_large_answer_is_cut_off_and_the_server_says_nothing(tmp_path):
    body = rows(1, 0, parameters={"binary_data_output": True}).replace(b'"shape": [1, 0]', b'"shape": [1, 200000]')
    body = body.replace(b"[]", b"[" + b"0.1," * 199_999 + b"1]")
    with serving(hostile_model(tmp_path), write_seconds=0.5, seconds=20.0) as running:
        with running.connect() as connection:
            connection.sendall(f"POST {INFER} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            with contextlib.suppress(OSError):
                connection.settimeout(60)
                connection.recv(10)
                wait_for_refusal(running)
        assert running.ask("GET", "/v2/health/live") == (200, {"live": True})
        assert running.errors == []


def wait_for_refusal(running: Running) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if 'oarlock_refused_total{limit="write_seconds"} 1.0' in running.ask("GET", "/metrics")[1]:
            return
        time.sleep(0.02)
    raise AssertionError("the client was not cut off")


# Each limit


def widening(folder: Path) -> ol.Model:
    """A model of rows of any length, with values of twice that length on the way."""
    with ol.Program(seed=0) as program:
        x = ol.layer.data("x", shape=["t"])
        wide = ol.op.concat(x, ol.op.exp(x), axis=1)
        program.targets["y"] = ol.op.add(x, ol.op.sin(x))
        program.targets["wide"] = ol.op.exp(wide)
    return model_of(program, folder)


def refused(answered: Answered, limit: str) -> str:
    assert answered.status == 413, answered.body
    assert answered.json["type"] == "LimitError"
    assert f"raise oarlock serve FILE --{limit}" in answered.json["hint"]
    return answered.json["error"]


def ask(model: ol.Model, content: object, path: str = "/infer", **limits: Any) -> tuple[Answered, int]:
    """The answer to a request, and how often the model was run for it."""
    runs = []
    step = model.executor.prepare(model.program, [*model.program.targets], scope=model.scope, training=False, return_numpy=False)

    def run(feed: Any) -> Any:
        runs.append(feed)
        return step(feed)

    return serve_here(model, lambda asker: asker("POST", path, content), run=run, **limits), len(runs)


@pytest.mark.parametrize(
    ("limits", "limit", "message"),
    [
        ({"rows": 2}, "rows", "'x' has 3 rows, but the limit is 2"),
        ({"json_values": 10}, "json-values", "the JSON has more than 10 values"),
        ({"answer_bytes": 71}, "answer-bytes", "the answer has at least 72 bytes, but the limit is 71"),
        ({"run_bytes": 100}, "run-bytes", "the run needs 144 bytes, but the limit is 100"),
    ],
)
def test_a_request_beyond_a_limit_is_refused_before_anything_is_run(tmp_path, limits, limit, message):
    answered, runs = ask(widening(tmp_path), {"x": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]}, **limits)
    assert refused(answered, limit) == message
    assert runs == 0


def test_the_limits_are_those_of_what_is_asked_for(tmp_path):
    model, content = widening(tmp_path), {"inputs": [{"name": "x", "shape": [1, 8], "datatype": "FP32", "data": [0.0] * 8}]}
    narrow = {**content, "outputs": [{"name": "y"}]}
    assert ask(model, content, INFER, answer_bytes=95)[0].status == 413
    assert ask(model, narrow, INFER, answer_bytes=180)[0].status == 200


def test_an_answer_whose_text_is_too_long_is_refused_while_it_is_written(tmp_path):
    answered, runs = ask(widening(tmp_path), {"x": [[0.1234] * 6]}, answer_bytes=100)
    assert refused(answered, "answer-bytes") == "the answer has more than 100 bytes"
    assert runs == 1


def test_an_output_of_more_rows_than_its_input_is_refused_before_anything_is_run(tmp_path):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[3])
        program.targets["y"] = ol.op.concat(x, x, axis=0)
    answered, runs = ask(model_of(program, tmp_path), {"x": [[1.0, 2.0, 3.0]] * 3}, rows=5)
    assert refused(answered, "rows") == "the output 'y' has 6 rows, but the limit is 5"
    assert runs == 0


def test_rows_that_only_computed_values_tell_are_checked_before_the_answer_is_built(tmp_path):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[])
        program.targets["places"] = ol.op.nonzero(ol.op.greater(ol.op.exp(x), 0.0))
    answered, runs = ask(model_of(program, tmp_path), {"x": [1.0] * 6}, rows=6)
    assert answered.status == 200
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[])
        counts = ol.op.cast(ol.op.round(ol.op.exp(x)), "int64")
        program.targets["counted"] = ol.op.bincount(counts)
    answered, runs = ask(model_of(program, tmp_path), {"x": [3.0]}, rows=19)
    assert refused(answered, "rows") == "the output 'counted' has 21 rows, but the limit is 19"
    assert runs == 1


def test_the_longest_of_sequences_that_are_fed_counts_before_anything_is_run(tmp_path):
    with ol.Program() as program:
        x = ol.layer.data("x", shape=[1], ragged=True)
        program.targets["y"] = ol.layer.sequence_pad(ol.op.exp(x))
    (splits,) = [var.name for var in program.main.inputs if var.name != "x"]
    model = model_of(program, tmp_path)
    content = {"x": [[1.0]] * 100, splits: [0, 100] + [100] * 99}
    answered, runs = ask(model, content, run_bytes=40_000)
    assert refused(answered, "run-bytes") == "the run needs 41,608 bytes, but the limit is 40,000"
    assert runs == 0
    assert ask(model, content)[0].status == 200


COUNTING = {
    "arange": lambda number: ol.op.arange(stop=number),
    "bincount": ol.op.bincount,
    "full": lambda number: ol.op.full(shape=number, value=1.0),
}


@pytest.mark.parametrize("making", COUNTING.values(), ids=COUNTING)
def test_memory_that_a_computed_value_decides_is_refused_before_it_is_allocated(tmp_path, making):
    with ol.Program() as program:
        number = ol.op.cast(ol.op.exp(ol.layer.data("x", shape=[1], batch=None)), "int64")
        program.targets["y"] = ol.op.reduce_sum(making(number))
    model = model_of(program, tmp_path)

    async def asking(asker: Asker) -> list[Answered]:
        return [await asker("POST", "/infer", {"x": [each]}) for each in (3.0, 28.0, 3.0)]  # e**28 is above 10**12

    small, large, again = serve_here(model, asking)
    assert small.status == again.status == 200
    assert "live bytes, but the limit is 268,435,456" in refused(large, "run-bytes")


def test_joined_runs_are_within_the_limit_of_one(tmp_path):
    """Three requests that wait, of which two fit into one run."""
    model, sizes, may_run = widening(tmp_path), [], threading.Event()
    step = model.executor.prepare(model.program, [*model.program.targets], scope=model.scope, training=False, return_numpy=False)

    def run(feed: Any) -> Any:
        may_run.wait(30)
        sizes.append(len(feed["x"]))
        return step(feed)

    async def asking(asker: Asker) -> list[Answered]:
        first = asyncio.create_task(asker("POST", "/infer", {"x": [[1.0, 2.0]]}))
        while asker.service.queue.is_idle:
            await asyncio.sleep(0.01)
        others = [asyncio.create_task(asker("POST", "/infer", {"x": [[1.0, 2.0]]})) for _ in range(3)]
        while len(asker.service.queue) < 3:
            await asyncio.sleep(0.01)
        may_run.set()
        return list(await asyncio.gather(first, *others))

    answers = serve_here(model, asking, run=run, run_bytes=100, batch_seconds=0.0)
    assert [answered.status for answered in answers] == [200] * 4
    assert sizes == [1, 2, 1]


@pytest.mark.parametrize(
    ("datatype", "number", "message"),
    [
        ("FP16", 70000, '"x": 70000.0 is out of range for float16'),
        ("FP16", -65520, '"x": -65520.0 is out of range for float16'),
        ("FP32", 1e39, '"x": 1e+39 is out of range for float32'),
        ("BF16", 3.4e38, '"x": 3.4e+38 is out of range for bfloat16'),
    ],
)
def test_a_float_that_a_datatype_does_not_hold_is_refused(tmp_path, datatype, number, message):
    dtype = {"FP16": "float16", "FP32": "float32", "BF16": "bfloat16"}[datatype]
    with ol.Program() as program:
        program.targets["y"] = ol.op.abs(ol.layer.data("x", shape=[], dtype=dtype))
    model = model_of(program, tmp_path)

    def content(*data: object) -> dict[str, Any]:
        return {"inputs": [{"name": "x", "shape": [len(data)], "datatype": datatype, "data": [*data]}]}

    answered, _ = ask(model, content(1.0, number), INFER)
    assert (answered.status, answered.json["error"]) == (400, message)
    answered, _ = ask(model, content(1.0, "Infinity", "NaN"), INFER)
    assert answered.json["outputs"][0]["data"] == [1.0, "Infinity", "NaN"]


def test_a_number_beyond_all_floats_is_refused(tmp_path):
    answered, _ = ask(widening(tmp_path), b'{"x": [[1e400]]}')
    assert answered.status == 400
    assert answered.json["error"] == '"x": a number is out of range for float32'


def test_what_is_held_counts_answers_too(tmp_path):
    model = widening(tmp_path)

    async def asking(asker: Asker) -> tuple[Answered, int]:
        return await asker("POST", "/infer", {"x": [[0.5] * 10]}), asker.service.held.total

    answered, held = serve_here(model, asking, held_bytes=150)
    assert (answered.status, held) == (429, 0)
    assert answered.json["error"] == "requests and answers in memory exceed 150 bytes"
    answered, held = serve_here(model, asking)
    assert (answered.status, held) == (200, 0)


# Answers in pieces


@pytest.mark.parametrize("shape", [(), (0,), (3,), (50_000,), (2, 40_000), (40_000, 2), (3, 20_000, 2), (30_000, 0), (0, 5), (2, 3, 4)])
def test_an_answer_in_pieces_is_the_same_text(shape):
    tensor = torch.randn(shape)
    flat, nested = [*json_pieces(tensor)], [*nested_json_pieces(tensor)]
    assert json.loads("".join(flat)) == to_json(tensor)
    assert "".join(nested) == json.dumps(tensor.tolist())
    assert max(map(len, [*flat, *nested])) < 2**20
    assert b"".join(raw_pieces(tensor)) == to_raw(tensor) == tensor.numpy().tobytes()


@pytest.mark.parametrize(
    "chunk", [b"1\r\nx\r\n", b"1;" + b"a" * 20 + b"\r\n[\r\n", b"0001 \r\n[\r\n"], ids=["bytes", "extensions", "zeros"]
)
def test_a_body_in_very_many_chunks_is_refused_and_the_server_goes_on(server, chunk):
    head = b"POST /infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with server.connect() as connection:
        connection.sendall(head)
        with contextlib.suppress(OSError):
            connection.sendall(chunk * 200_000)
        with contextlib.suppress(OSError):  # the answer may be lost with what was not read
            status, _, _ = read_answer(connection)
            assert status in (0, 413)
    assert server.ask("GET", "/v2/health/live") == (200, {"live": True})
    page = server.ask("GET", "/metrics")[1]
    assert 'oarlock_refused_total{limit="chunks"}' in page


def test_a_body_in_some_chunks_is_read(server):
    body = b'{"x": [[1.0, 2.0]' + b", [1.0, 2.0]" * 3000 + b"]}"
    head = b"POST /infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    parts = [body[at : at + 64] for at in range(0, len(body), 64)]
    with server.connect() as connection:
        connection.sendall(head + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n")
        status, _, answered = read_answer(connection)
    assert status == 200
    assert len(json.loads(answered)["y"]) == 3001
