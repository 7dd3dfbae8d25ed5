"""A server and its connections: what is no HTTP, who is slow, who is too many; and its stop, with requests under way."""

import contextlib
import json
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from processes import run_oarlock
from serving.asking import model_of, rowwise_program
from serving.running import Running, read_answer, serving, wait_until
from tolerances import BATCHED

import oarlock as ol

FEED = {"x": [[1.0, -2.0, 0.5]], "id": [3]}
LIMITS = {"header_seconds": 1.0, "body_seconds": 1.5, "write_seconds": 1.5, "idle_seconds": 3.0, "connections": 40, "body_bytes": 2**20}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    model_of(rowwise_program(), folder)
    return folder / "model.safetensors"


@pytest.fixture(scope="module")
def server(path: Path) -> Iterator[Running]:
    with serving(path, **LIMITS) as running:
        yield running
        assert running.errors == [], "nothing of what strangers do is worth a line"


def expected(path: Path) -> dict[str, Any]:
    model = ol.load_model(path)
    values = ol.infer(model, {"x": torch.tensor(FEED["x"]), "id": torch.tensor(FEED["id"])})
    return {name: value.tolist() for name, value in values.items()}


def request(content: object = FEED, *, path: str = "/infer", head: str = "") -> bytes:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode() + body


def test_an_answer_has_the_bits_of_a_run_here(server, path):
    assert server.ask("POST", "/infer", FEED) == (200, expected(path))
    assert server.ask("GET", "/v2/health/ready") == (200, {"ready": True})


def test_a_connection_carries_one_request_after_another(server, path):
    with server.connect() as connection:
        for _ in range(3):
            connection.sendall(request())
            status, _, body = read_answer(connection)
            assert (status, json.loads(body)) == (200, expected(path))


def test_requests_that_are_sent_at_once_are_answered_in_order(server, path):
    with server.connect() as connection:
        connection.sendall(request() + request({"x": 1}) + request())
        data = b""
        while data.count(b"HTTP/1.1 ") < 3 or not data.endswith(b"}"):
            data += connection.recv(2**16)
    assert re.findall(rb"HTTP/1.1 (\d+)", data) == [b"200", b"400", b"200"]


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"\x00" * 100 + b"\r\n\r\n",
        b"POST /infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
        b"POST /infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST /infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"b" * 20_000, b"GET /" + b"a" * 20_000,
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nbad x\r\n\r\n",
    ],
)  # fmt: skip
def test_what_is_no_http_is_an_error_of_ours(server, data):
    with server.connect() as connection:
        connection.sendall(data)
        status, _, body = read_answer(connection)
    assert status in (400, 404, 431), body
    assert json.loads(body)["type"] in ("FormatError", "ArgumentError", "LimitError")
    assert b"Traceback" not in body


def test_a_large_head_that_comes_at_once_is_refused_too(server):
    with server.connect() as connection:
        connection.sendall(b"GET /v2 HTTP/1.1\r\nHost: localhost\r\nA: " + b"b" * 40_000 + b"\r\n\r\n")
        status, _, body = read_answer(connection)
    assert status in (400, 431)
    assert json.loads(body)["type"] in ("FormatError", "LimitError")


@pytest.mark.parametrize("chunked", [False, True])
def test_who_sends_too_much_hears_of_it(server, chunked):
    """The answer is there while the client still sends, and the connection is not closed over it."""
    with server.connect() as connection:
        piece, head = b" " * 2**16, b"POST /infer HTTP/1.1\r\nHost: localhost\r\n"
        connection.sendall(head + (b"Transfer-Encoding: chunked\r\n\r\n" if chunked else b"Content-Length: 3000000\r\n\r\n"))
        for _ in range(40):
            connection.sendall(b"10000\r\n" + piece + b"\r\n" if chunked else piece)
        status, headers, body = read_answer(connection)
    assert (status, headers["connection"]) == (413, "close")
    assert json.loads(body)["error"] == "the body has more than 1,048,576 bytes"


def ended_after(connection: socket.socket) -> float:
    """The seconds until the other side has ended a connection."""
    started = time.monotonic()
    try:
        while connection.recv(2**16):
            pass
    except ConnectionError:
        pass
    return time.monotonic() - started


@pytest.mark.parametrize("sent", [b"", b"GET /v2 HTT", b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n"])
def test_who_sends_no_whole_head_is_ended(server, sent):
    with server.connect() as connection:
        connection.sendall(sent)
        assert 0.3 < ended_after(connection) < 20


def test_a_head_that_comes_byte_by_byte_is_ended_too(server):
    with server.connect() as connection:
        started = time.monotonic()
        with pytest.raises(OSError):  # noqa: PT011  whichever of them the system has
            for _ in range(1000):
                connection.sendall(b"a")
                time.sleep(0.05)
        assert time.monotonic() - started < 20


def test_a_second_head_is_waited_for_no_longer(server):
    with server.connect() as connection:
        connection.sendall(request())
        assert read_answer(connection)[0] == 200
        connection.sendall(b"GET /v2 HTT")
        assert ended_after(connection) < 20


def test_a_body_that_comes_slowly_is_refused(server):
    with server.connect() as connection:
        connection.sendall(b"POST /infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
        status, _, body = read_answer(connection)
    assert status == 408
    assert json.loads(body)["type"] == "LimitError"


def test_who_does_not_read_is_ended(server):
    """Each answer of metrics is some kilobytes; a client that reads none of a thousand of them holds no memory for long."""
    with server.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**12)
        one = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        connection.settimeout(0.5)
        try:
            while True:
                connection.sendall(one * 50)
        except TimeoutError:
            pass
        except ConnectionError:
            return
        connection.settimeout(60)
        wait_until(lambda: 'oarlock_refused_total{limit="write_seconds"}' in server.ask("GET", "/metrics")[1], 30)


def test_slow_connections_stop_nobody_and_too_many_are_refused(server, path):
    held = [server.connect() for _ in range(LIMITS["connections"] - 3)]
    try:
        assert server.ask("POST", "/infer", FEED) == (200, expected(path))
        held += [server.connect() for _ in range(8)]
        time.sleep(0.1)
        held[-1].sendall(request())
        status, headers, body = read_answer(held[-1])
        assert (status, headers["connection"]) == (503, "close")
        assert json.loads(body)["error"] == "40 connections are already open"
    finally:
        for connection in held:
            connection.close()
    wait_until(lambda: server.ask("POST", "/infer", FEED)[0] == 200, 30)


def test_many_clients_at_once_have_the_bits_of_a_run_here(server, path):
    right, answers = expected(path), []

    def client() -> None:
        with server.connect() as connection:
            for _ in range(10):
                connection.sendall(request())
                status, _, body = read_answer(connection)
                answers.append((status, json.loads(body)) == (200, right))

    threads = [threading.Thread(target=client) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * 80


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_after_all_that_it_had_accepted(path, number):
    """One runs, others wait, one is still sending its body: each is answered. What comes afterwards is refused. The status is 0."""
    with serving(path, slow=0.4, batch_rows=1) as running:
        whole = [running.connect() for _ in range(4)]
        for connection in whole:
            connection.sendall(request())
        half = running.connect()
        half.sendall(request()[:-5])
        open_already, unfinished = running.connect(), running.connect()
        wait_until(lambda: "oarlock_requests_in_flight 6.0" in running.ask("GET", "/metrics")[1], 60)
        running.stop(number)
        time.sleep(0.1)
        open_already.sendall(request())
        refused, _, body = read_answer(open_already)
        assert (refused, json.loads(body)["error"]) == (503, "the server is stopping")
        unfinished.sendall(request()[:-5])  # refused while it still sends, which it goes on with for longer than anybody waits
        half.sendall(request()[-5:])
        right = expected(path)
        for connection in (*whole, half):
            status, _, body = read_answer(connection)
            assert (status, json.loads(body)) == (200, right)
        assert running.process.wait(60) == 0
        with pytest.raises(ConnectionError):
            running.connect(5)
        assert read_answer(unfinished)[0] in (0, 503)
        for connection in (*whole, half, open_already, unfinished):
            connection.close()
    assert running.errors == []


def test_a_run_that_does_not_end_is_not_waited_for(path):
    with serving(path, slow=600.0, stop_seconds=0.5) as running, running.connect() as connection:
        connection.sendall(request())
        wait_until(lambda: "oarlock_requests_in_flight 2.0" in running.ask("GET", "/metrics")[1], 60)
        running.stop()
        status, _, body = read_answer(connection)
        assert (status, json.loads(body)["type"]) == (503, "LimitError")
        wait_until(lambda: not accepts(running), 10)


def accepts(running: Running) -> bool:
    """Whether a server takes connections still."""
    with contextlib.suppress(OSError):
        running.connect(1.0).close()
        return True
    return False


# The verb


def test_the_verb_serves_a_file_under_its_name(path):
    command = ["-m", "oarlock", "serve", str(path), "--port", "0", "--batch-rows", "8"]
    with serving(path, command=command) as running:
        wait_until(lambda: len(running.lines) == 2, 30)
        assert running.lines == [
            f"model.safetensors at {running.address}/v2/models/model\n",
            "up to 8 rows of several requests are run together\n",
        ]
        assert running.address.startswith("http://127.0.0.1:")
        assert running.ask("GET", "/v2/models/model")[1]["name"] == "model"
        running.stop()
        assert running.process.wait(60) == 0
    assert running.errors == []


def test_the_verb_serves_by_onnx_runtime(path):
    command = ["-m", "oarlock", "serve", str(path), "--port", "0", "--backend", "onnxruntime"]
    with serving(path, command=command) as running:
        status, answer = running.ask("POST", "/infer", FEED)
        assert status == 200
        for name, value in expected(path).items():
            torch.testing.assert_close(torch.tensor(answer[name]), torch.tensor(value), rtol=BATCHED[0], atol=BATCHED[1])
        assert running.ask("POST", "/infer", {**FEED, "id": [4]})[1]["type"] == "KernelError"
        assert running.ask("POST", "/infer", {**FEED, "x": [[1.0]]})[1]["type"] == "FeedError"
        running.stop()
        assert running.process.wait(60) == 0


def test_a_strangers_file_is_not_served(path):
    ended = run_oarlock(path.parent, "serve", path.name, "--untrusted")
    assert ended.returncode == 1
    assert ended.stderr.startswith("ArgumentError: untrusted files cannot be served")


def test_what_cannot_be_served_is_refused(path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = run_oarlock(path.parent, "serve", path.name, "--port", port)
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"ArgumentError: cannot bind to 127.0.0.1, port {port}: Address already in use")
