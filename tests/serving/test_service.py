"""The answers of a server: the protocol there and back, what is refused and how, and requests that are run together."""

import asyncio
import json
import threading
import time
from typing import Any

import pytest
import torch
from serving.asking import Answered, Asker, model_of, rowwise_program, serve_here, tensor

import oarlock as ol
from oarlock import errors
from oarlock.serving.tensors import from_json, from_raw, to_raw

X, ID = [[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]], [3, 0]
INPUTS = [tensor("x", X), tensor("id", ID, "INT64")]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ol.Model:
    return model_of(rowwise_program(), tmp_path_factory.mktemp("model"))


def expected(model: ol.Model, x: list[list[float]] = X, id: list[int] = ID) -> dict[str, torch.Tensor]:
    feed = {"x": torch.tensor(x), "id": torch.tensor(id)}
    names = list(model.program.targets)
    return dict(zip(names, ol.Executor().eval(model.program, names, feed, scope=model.scope, return_numpy=False), strict=True))


def ask(model: ol.Model, *what: Any, limits: dict[str, Any] | None = None, **how: Any) -> Answered:
    """One request to a service that runs for it alone."""
    return serve_here(model, lambda asker: asker(*what, **how), **(limits or {}))


def outputs(answered: Answered) -> dict[str, torch.Tensor]:
    """The tensors of an answer, all of them JSON."""
    assert answered.status == 200, answered.body
    return {
        item["name"]: from_json("y", item["data"], item["shape"], {"FP32": ol.DType.FLOAT32}[item["datatype"]])
        for item in answered.json["outputs"]
    }


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


# What there is to know


def test_the_server_and_the_model_say_what_they_are(model):
    async def asking(asker: Asker) -> list[Answered]:
        paths = ("/v2", "/v2/models/m", "/v2/health/live", "/v2/health/ready", "/v2/models/m/ready")
        return [await asker("GET", path) for path in paths]

    server, metadata, live, ready, ready_model = serve_here(model, asking)
    assert server.json["name"] == "oarlock"
    assert server.json["extensions"] == ["binary_tensor_data"]
    assert metadata.json == {
        "name": "m",
        "versions": [],
        "platform": "oarlock",
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}, {"name": "id", "datatype": "INT64", "shape": [-1]}],
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 3]}, {"name": "found", "datatype": "FP32", "shape": [-1, 2]}],
    }
    assert (live.status, live.json) == (200, {"live": True})
    assert (ready.status, ready.json) == (200, {"ready": True})
    assert ready_model.json == {"name": "m", "ready": True}


# Requests, and the bits that come back


def test_an_answer_has_the_bits_of_a_run_here(model):
    answered = ask(model, "POST", "/v2/models/m/infer", {"id": "7", "inputs": INPUTS})
    assert answered.json["model_name"] == "m"
    assert answered.json["id"] == "7"
    assert [(item["name"], item["shape"]) for item in answered.json["outputs"]] == [("y", [2, 3]), ("found", [2, 2])]
    assert same(outputs(answered), expected(model))


def test_data_may_be_flat(model):
    flat = [{**item, "data": torch.tensor(item["data"]).reshape(-1).tolist()} for item in INPUTS]
    assert same(outputs(ask(model, "POST", "/v2/models/m/infer", {"inputs": flat})), expected(model))


def test_some_outputs_may_be_asked_for(model):
    answered = ask(model, "POST", "/v2/models/m/infer", {"inputs": INPUTS, "outputs": [{"name": "found"}]})
    assert outputs(answered).keys() == {"found"}


def test_tensors_may_be_bytes(model):
    raw = to_raw(torch.tensor(X)) + to_raw(torch.tensor(ID))
    head = json.dumps({
        "inputs": [
            {"name": "x", "shape": [2, 3], "datatype": "FP32", "parameters": {"binary_data_size": 24}},
            {"name": "id", "shape": [2], "datatype": "INT64", "parameters": {"binary_data_size": 16}},
        ],
        "outputs": [{"name": "y", "parameters": {"binary_data": True}}, {"name": "found"}],
    }).encode()  # fmt: skip
    headers = {"Inference-Header-Content-Length": str(len(head))}
    answered = ask(model, "POST", "/v2/models/m/infer", head + raw, headers=headers)
    length = int(answered.headers["inference-header-content-length"])
    message = json.loads(answered.body[:length])
    assert message["outputs"][0]["parameters"] == {"binary_data_size": 24}
    assert torch.equal(from_raw("y", answered.body[length:], [2, 3], ol.DType.FLOAT32), expected(model)["y"])
    assert message["outputs"][1]["data"] == expected(model)["found"].reshape(-1).tolist()


def test_plain_json_is_by_names(model):
    answered = ask(model, "POST", "/infer", {"x": X, "id": ID})
    assert answered.json == {name: value.tolist() for name, value in expected(model).items()}


def test_no_rows_are_rows(model):
    answered = ask(model, "POST", "/v2/models/m/infer", {"inputs": [{**tensor("x", []), "shape": [0, 3]}, tensor("id", [], "INT64")]})
    assert [item["shape"] for item in answered.json["outputs"]] == [[0, 3], [0, 2]]


def test_a_large_request_is_read_and_answered_too(model):
    x, id = torch.randn(3000, 3).tolist(), [1] * 3000
    answered = ask(model, "POST", "/v2/models/m/infer", {"inputs": [tensor("x", x), tensor("id", id, "INT64")]})
    assert same(outputs(answered), expected(model, x, id))


# What is refused


def refusal(answered: Answered, status: int, kind: str, message: str) -> dict[str, Any]:
    assert answered.status == status, answered.body
    assert answered.headers["content-type"] == "application/json"
    assert answered.json["type"] == kind
    assert answered.json["error"].startswith(message), answered.json["error"]
    assert issubclass(getattr(errors, kind), ol.OarlockError)
    assert b"Traceback" not in answered.body
    assert b".py" not in answered.body, "the author's files are none of the caller's"
    return answered.json


def changed(at: int, **fields: Any) -> dict[str, Any]:
    return {"inputs": [{**item, **fields} if number == at else item for number, item in enumerate(INPUTS)]}


MALFORMED: list[tuple[Any, int, str, str]] = [
    (b"", 400, "FormatError", "the body is not JSON"),
    (b"[", 400, "FormatError", "the body is not JSON"),
    (b"[]", 400, "FormatError", "the body is not a JSON object"),
    (b"\xff\xfe", 400, "FormatError", "the body is not JSON"),
    (b"[" * 100_000, 400, "FormatError", "the body is not JSON"),
    (b'{"inputs": [], "inputs": []}', 400, "FormatError", "the body has a duplicate name"),
    (b'{"inputs": [NaN]}', 400, "FormatError", "the body is not JSON"),
    (b'{"inputs": [' + b"1" * 5000 + b"]}", 400, "FormatError", "the body is not JSON"),
    ({}, 400, "FormatError", 'a request needs "inputs", a list of tensors'),
    ({"inputs": 3}, 400, "FormatError", 'a request needs "inputs", a list of tensors'),
    ({"inputs": [3]}, 400, "FormatError", "a tensor must be an object, not int"),
    ({"inputs": [{}]}, 400, "FormatError", 'a tensor needs a "name"'),
    ({"inputs": INPUTS, "id": 3}, 400, "FormatError", "the id must be a string of at most 256 characters"),
    ({"inputs": [*INPUTS, INPUTS[0]]}, 400, "FormatError", "'x' is given twice"),
    ({"inputs": INPUTS, "outputs": "y"}, 400, "FormatError", '"outputs" must be a list of objects with a "name"'),
    ({"inputs": INPUTS, "outputs": [{"name": "z"}]}, 404, "UndefinedVarError", "'z' is not an output of the model"),
    (changed(0, datatype="FP99"), 400, "FormatError", "'x' has the unknown datatype 'FP99'"),
    (changed(0, datatype=[]), 400, "FormatError", "'x' has the unknown datatype []"),
    (changed(0, shape=[-2, 3]), 400, "FormatError", "'x' needs a shape of at most 16 non-negative integers"),
    (changed(0, shape=[2.0, 3]), 400, "FormatError", "'x' needs a shape of at most 16 non-negative integers"),
    (changed(0, shape=[1] * 17), 400, "FormatError", "'x' needs a shape of at most 16 non-negative integers"),
    (changed(0, shape=[2**31 - 1] * 16), 400, "FeedError", '"x" has shape'),
    (changed(0, shape=[2, 4]), 400, "FeedError", '"x" has shape [2, 4], but its data is nested differently'),
    (changed(0, shape=[6], data=[0.0] * 6), 400, "FeedError", '"x" must have shape [n, 3], not [6]'),
    (changed(0, shape=[3, 3], data=[0.0] * 9), 400, "FeedError", '"id" has n = 2, but "x" has n = 3'),
    (changed(0, datatype="FP64"), 400, "FeedError", '"x" must be float32, not float64'),
    (changed(0, name="xx"), 400, "FeedError", '"xx" is not an input of the program'),
    (
        changed(0, parameters={"binary_data_size": 24}),
        400,
        "FormatError",
        "'x' has data as well, or a binary_data_size beyond the 0 bytes after the JSON",
    ),
    ({"inputs": INPUTS[:1]}, 400, "FeedError", '"id" is not fed'),
    (changed(1, data=[4, 0]), 422, "KernelError", "gather: row 4 is out of range"),
    (changed(1, data=[-1, 0]), 422, "KernelError", "gather: row -1 is out of range"),
]


@pytest.mark.parametrize(("content", "status", "kind", "message"), MALFORMED)
def test_a_malformed_request_is_an_error_of_ours(model, content, status, kind, message):
    refusal(ask(model, "POST", "/v2/models/m/infer", content), status, kind, message)


def test_what_is_said_of_a_feed_says_what_is_taken(model):
    said = refusal(ask(model, "POST", "/v2/models/m/infer", changed(0, name="idd")), 400, "FeedError", '"idd" is not an input')
    assert said["contract"] == "the program takes x: float32[n, 3], id: int64[n]"
    assert said["hint"] == 'did you mean "id"?'


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        ({"z": 1}, "FeedError", "'z' is not an input of the program"),
        ({"x": [[1.0, 2.0], [3.0]], "id": [0]}, "FeedError", '"x" has shape [2, 2], but its data is nested differently'),
        ({"x": X, "id": [0.5, 1.0]}, "FeedError", '"id" must contain int64 data, not 0.5'),
        (b"null", "FormatError", "the body is not a JSON object"),
    ],
)
def test_malformed_plain_json_is_an_error_of_ours(model, content, kind, message):
    refusal(ask(model, "POST", "/infer", content), 400, kind, message)


@pytest.mark.parametrize("length", ["x", "-1", "1e3", "99999999", "²"])
def test_a_wrong_length_of_the_json_is_refused(model, length):
    headers = {"inference-header-content-length": length}
    if not length.isascii():
        headers = {"inference-header-content-length": "0x2"}
    assert ask(model, "POST", "/v2/models/m/infer", {"inputs": INPUTS}, headers=headers).status == 400


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404), ("GET", "/v2/models/other", 404), ("POST", "/v2/models/other/infer", 404), ("GET", "/v2/models/m/infer", 405),
        ("DELETE", "/v2/models/m", 405), ("GET", "/v2/models/../m", 404), ("POST", "/v2/models/m/versions/1/infer", 404),
        ("GET", "//v2", 404),
    ],
)  # fmt: skip
def test_other_paths_and_methods_are_refused(model, method, path, status):
    answered = ask(model, method, path)
    assert answered.status == status
    assert answered.json["type"] in ("ArgumentError", "UndefinedVarError")


def test_a_body_that_is_too_large_is_refused_by_its_head_and_by_its_bytes(model):
    limits = {"body_bytes": 100}
    by_head = ask(model, "POST", "/infer", parts=[b" " * 50, b" " * 51], limits=limits)
    refusal(by_head, 413, "LimitError", "the body has more than 100 bytes")
    assert by_head.headers["connection"] == "close"
    by_bytes = ask(model, "POST", "/infer", parts=[b" " * 50, b" " * 51, b" " * 51], length=None, limits=limits)
    refusal(by_bytes, 413, "LimitError", "the body has more than 100 bytes")


def test_bodies_are_held_to_a_sum(model):
    answered = ask(model, "POST", "/infer", parts=[b" " * 90, b" " * 90], limits={"held_bytes": 100})
    refusal(answered, 429, "LimitError", "requests and answers in memory exceed 100 bytes")

    async def asking(asker: Asker) -> int:
        for _ in range(5):
            await asker("POST", "/infer", parts=[b" " * 90, b" " * 20])
            await asker("POST", "/infer", parts=[b" " * 90, None])
            await asker("POST", "/infer", {"x": X, "id": ID})
        return asker.service.held.total

    assert serve_here(model, asking, held_bytes=100) == 0


def test_a_body_that_does_not_come_is_refused(model):
    started = time.monotonic()

    async def stalled(asker: Asker) -> Answered:
        return await asker("POST", "/infer", parts=[b"{", *[b" "] * 10**6], length=10**7)

    answered = serve_here(model, stalled, body_seconds=0.2, body_bytes=10**8)
    refusal(answered, 408, "LimitError", "the request body took more than 0.2 seconds to arrive")
    assert time.monotonic() - started < 10


def test_a_client_that_goes_away_leaves_nothing(model):
    answered = ask(model, "POST", "/infer", parts=[b"{", None])
    assert answered.status == 499


def test_a_compressed_body_is_refused(model):
    answered = ask(model, "POST", "/infer", {"x": X}, headers={"content-encoding": "gzip"})
    refusal(answered, 415, "FormatError", "compressed request bodies are not supported")


def test_a_long_head_is_refused(model):
    answered = ask(model, "GET", "/v2", headers={"a": "b" * 200}, limits={"header_bytes": 200})
    refusal(answered, 431, "LimitError", "more than 200 bytes before the body")


@pytest.mark.parametrize(
    ("host", "status"), [("localhost:8000", 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("evil.example", 421), ("", 421)]
)
def test_a_server_of_this_machine_answers_to_its_names_alone(model, host, status):
    hosts = frozenset({"localhost", "127.0.0.1", "[::1]"})
    answered = serve_here(model, lambda asker: asker("GET", "/v2", headers={"host": host}), hosts=hosts)
    assert answered.status == status


def test_a_failure_of_the_server_says_nothing_of_it(model, capsys):
    def fail(feed: Any) -> Any:
        raise RuntimeError("secret")

    answered = serve_here(model, lambda asker: asker("POST", "/infer", {"x": X, "id": ID}), run=fail)
    assert answered.status == 500
    assert answered.json == {"error": "the server failed; its log says how", "type": "InternalError"}
    assert "RuntimeError: secret" in capsys.readouterr().err


def test_a_model_without_targets_is_refused(tmp_path):
    program = rowwise_program()
    program.targets.clear()
    with pytest.raises(ol.ArgumentError, match="the model has no targets, so it cannot be served"):
        serve_here(model_of(program, tmp_path), lambda asker: asker("GET", "/v2"))


# Requests together


class Recorder:
    """Runs the model, slowly where it is told to; what it was fed is kept."""

    def __init__(self, model: ol.Model):
        self._step = model.executor.prepare(
            model.program, list(model.program.targets), scope=model.scope, training=False, return_numpy=False
        )
        self.rows: list[int] = []
        self.may_run = threading.Event()
        self.may_run.set()

    def __call__(self, feed: Any) -> Any:
        self.may_run.wait(20)
        self.rows.append(feed["x"].shape[0])
        return self._step(feed)


async def until(holds: Any) -> None:
    for _ in range(2000):
        if holds():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("that never came")


async def queued(asker: Asker, contents: list[Any]) -> list[asyncio.Task[Answered]]:
    """The answers to come to `contents`, of which the first runs and the others wait."""
    first = asyncio.create_task(asker("POST", "/infer", contents[0]))
    await until(lambda: not asker.service.queue.is_idle)
    rest = [asyncio.create_task(asker("POST", "/infer", content)) for content in contents[1:]]
    await until(lambda: len(asker.service.queue) == len(rest))
    return [first, *rest]


def requests_of(count: int) -> list[dict[str, Any]]:
    draw = torch.Generator().manual_seed(3)
    made = [(torch.randn(rows, 3, generator=draw), torch.randint(0, 4, (rows,), generator=draw)) for rows in [1, 2, 3, 1] * count][:count]
    return [{"x": x.tolist(), "id": id.tolist()} for x, id in made]


def test_requests_that_wait_are_run_together_and_have_the_bits_of_each_alone(model):
    asked = requests_of(9)
    recorder = Recorder(model)
    recorder.may_run.clear()

    async def asking(asker: Asker) -> list[Answered]:
        tasks = await queued(asker, asked)
        recorder.may_run.set()
        return list(await asyncio.gather(*tasks))

    together = serve_here(model, asking, run=recorder, batch_rows=6, batch_seconds=0.0)
    assert len(recorder.rows) < len(asked)
    assert max(recorder.rows) <= 6
    assert sum(recorder.rows) == sum(len(content["id"]) for content in asked)
    for content, answered in zip(asked, together, strict=True):
        assert answered.json == {name: value.tolist() for name, value in expected(model, **content).items()}


def test_one_row_in_a_batch_that_is_refused_is_an_error_for_that_request_alone(model):
    asked = requests_of(4)
    asked[2]["id"][0] = 4
    recorder = Recorder(model)
    recorder.may_run.clear()

    async def asking(asker: Asker) -> list[Answered]:
        tasks = await queued(asker, [requests_of(1)[0], *asked])
        recorder.may_run.set()
        return list(await asyncio.gather(*tasks))[1:]

    answers = serve_here(model, asking, run=recorder, batch_seconds=0.0)
    assert [answered.status for answered in answers] == [200, 200, 422, 200]
    assert recorder.rows == [1, 7, 1, 2, 3, 1]
    for number in (0, 1, 3):
        assert answers[number].json == {name: value.tolist() for name, value in expected(model, **asked[number]).items()}


def test_what_is_being_read_is_waited_for(model):
    """Two requests that come at once are one run, though nothing runs that they would wait for."""
    recorder = Recorder(model)

    async def asking(asker: Asker) -> None:
        slow = asker("POST", "/infer", parts=[json.dumps(requests_of(1)[0]).encode(), *[b" "] * 50])
        await asyncio.gather(slow, asker("POST", "/infer", requests_of(1)[0]))

    serve_here(model, asking, run=recorder, batch_seconds=10.0)
    assert recorder.rows == [2]


@pytest.mark.parametrize("rows", [1, 32])
def test_nothing_is_joined_where_that_is_said_and_nobody_waits_where_nobody_comes(model, rows):
    recorder = Recorder(model)

    async def asking(asker: Asker) -> float:
        started = time.monotonic()
        for content in requests_of(3):
            await asker("POST", "/infer", content)
        return time.monotonic() - started

    assert serve_here(model, asking, run=recorder, batch_rows=rows, batch_seconds=30.0) < 20
    assert recorder.rows == [1, 2, 3]


def test_a_full_queue_refuses_at_once(model):
    recorder = Recorder(model)
    recorder.may_run.clear()

    async def asking(asker: Asker) -> tuple[list[Answered], list[Answered]]:
        content = requests_of(1)[0]
        running = asyncio.create_task(asker("POST", "/infer", content))
        await until(lambda: not asker.service.queue.is_idle)
        waiting = [asyncio.create_task(asker("POST", "/infer", content)) for _ in range(3)]
        await until(lambda: len(asker.service.queue) == 3)
        refused = [await asker("POST", "/infer", content) for _ in range(5)]
        health = await asker("GET", "/v2/health/ready")
        recorder.may_run.set()
        return [*(await asyncio.gather(running, *waiting)), health], refused

    answered, refused = serve_here(model, asking, run=recorder, queue=3)
    assert {each.status for each in answered} == {200}
    for each in refused:
        refusal(each, 429, "LimitError", "3 requests are already waiting")
        assert each.headers["retry-after"] == "1"


def test_a_late_answer_is_an_error_and_what_waits_no_longer_is_not_run(model):
    recorder = Recorder(model)
    recorder.may_run.clear()

    async def asking(asker: Asker) -> tuple[list[Answered], Answered, Answered]:
        content = requests_of(1)[0]
        late = list(await asyncio.gather(*[asker("POST", "/infer", content) for _ in range(3)]))
        await until(lambda: asker.service.queue.is_overdue)
        not_ready = await asker("GET", "/v2/health/ready")
        recorder.may_run.set()
        await until(lambda: asker.service.queue.is_idle)
        return late, not_ready, await asker("POST", "/infer", content)

    late, not_ready, after = serve_here(model, asking, run=recorder, seconds=0.3, batch_rows=1)
    for each in late:
        refusal(each, 503, "LimitError", "the answer took more than 0.3 seconds")
    assert (not_ready.status, not_ready.json) == (503, {"ready": False})
    assert after.status == 200
    assert recorder.rows == [1, 1]


def test_a_server_that_stops_answers_what_it_has_and_refuses_the_rest(model):
    recorder = Recorder(model)
    recorder.may_run.clear()

    async def asking(asker: Asker) -> tuple[list[Answered], Answered, Answered]:
        tasks = await queued(asker, requests_of(3))
        asker.service.gate.stop()
        refused = await asker("POST", "/infer", requests_of(1)[0])
        not_ready = await asker("GET", "/v2/health/ready")
        recorder.may_run.set()
        return list(await asyncio.gather(*tasks)), refused, not_ready

    answered, refused, not_ready = serve_here(model, asking, run=recorder)
    assert [each.status for each in answered] == [200, 200, 200]
    refusal(refused, 503, "ArgumentError", "the server is stopping")
    assert refused.headers["connection"] == "close"
    assert not_ready.status == 503


# Metrics


def test_metrics_count_what_was_answered_and_run(model):
    async def asking(asker: Asker) -> str:
        for content in requests_of(3):
            await asker("POST", "/infer", content)
        await asker("POST", "/infer", b"[")
        await asker("GET", "/nothing")
        page = await asker("GET", "/metrics")
        assert page.headers["content-type"].startswith("text/plain; version=")
        return page.body.decode()

    lines = set(serve_here(model, asking).splitlines())
    assert {
        'oarlock_requests_total{route="infer",status="200"} 3.0',
        'oarlock_requests_total{route="infer",status="400"} 1.0',
        'oarlock_requests_total{route="other",status="404"} 1.0',
        'oarlock_request_seconds_count{route="infer"} 4.0',
        "oarlock_batch_rows_sum 6.0",
        "oarlock_batch_rows_count 3.0",
        "oarlock_run_seconds_count 3.0",
        "oarlock_requests_in_flight 1.0",
        "oarlock_queue_length 0.0",
        "oarlock_held_bytes 0.0",
    } <= lines
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines)


def test_a_model_of_complex_numbers_is_refused_by_name(tmp_path):
    with ol.Program() as program:
        program.targets["y"] = ol.op.conj(ol.layer.data("z", shape=[3], dtype="complex64"))
    with pytest.raises(errors.ArgumentError, match=r'^"z" is complex64\[n, 3\], but the protocol does not support complex numbers'):
        ask(model_of(program, tmp_path), "GET", "/v2/models/model")
