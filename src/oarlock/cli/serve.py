"""`oarlock serve`: serve a model file by HTTP."""

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from oarlock import inference
from oarlock.cli.options import Imports, import_operators
from oarlock.errors import ArgumentError
from oarlock.runtime.process import configure_process
from oarlock.serving.limits import ServingLimits
from oarlock.serving.served_model import ServedModel, run_by_onnxruntime
from oarlock.serving.server import serve as serve_model

__all__ = ["serve"]

_USUAL = ServingLimits()


def serve(
    path: Annotated[Path, typer.Argument(metavar="MODEL.safetensors", help="Model file.")],
    name: Annotated[str | None, typer.Option(help="Name of the model in URLs. Default: the name of the file.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on. 127.0.0.1: this machine only; 0.0.0.0: all interfaces.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 chooses a free one.")] = 8000,
    threads: Annotated[int | None, typer.Option(help="Number of threads per kernel. Default: the number of cores.")] = None,
    batch_rows: Annotated[int, typer.Option(help="Rows of several requests to run together; 1 runs each alone.")] = _USUAL.batch_rows,
    queue: Annotated[int, typer.Option(help="Largest number of waiting requests; more get status 429.")] = _USUAL.queue,
    connections: Annotated[int, typer.Option(help="Largest number of open connections; more are refused.")] = _USUAL.connections,
    body_bytes: Annotated[int, typer.Option(help="Largest request body; a larger one gets status 413.")] = _USUAL.body_bytes,
    rows: Annotated[int, typer.Option(help="Largest number of rows in a request or response; more get status 413.")] = _USUAL.rows,
    json_values: Annotated[int, typer.Option(help="Largest number of values and lists in a JSON request.")] = _USUAL.json_values,
    answer_bytes: Annotated[int, typer.Option(help="Largest response; a larger one gets status 413.")] = _USUAL.answer_bytes,
    run_bytes: Annotated[int, typer.Option(help="Largest memory for the values of a run; more gets status 413.")] = _USUAL.run_bytes,
    seconds: Annotated[float, typer.Option(help="Time limit of a request; a later response gets status 503.")] = _USUAL.seconds,
    backend: Annotated[str | None, typer.Option(help="onnxruntime: run with ONNX Runtime; results may differ in bits.")] = None,
    untrusted: Annotated[bool, typer.Option("--untrusted", help="Not supported: untrusted files cannot be served.")] = False,
    imports: Imports = None,
) -> None:
    """Serve a model by HTTP: the Open Inference Protocol v2, and plain JSON.

    [bold]GET /v2/models/NAME[/] describes the model, [bold]POST /v2/models/NAME/infer[/] and [bold]POST /infer[/] run it,
    [bold]GET /v2/health/ready[/] and [bold]GET /metrics[/] report the state of the server.

    SIGTERM and Ctrl-C stop the server: accepted requests are answered, and the exit status is 0.
    """
    if untrusted:
        raise ArgumentError(
            "untrusted files cannot be served: --untrusted limits the process of a single run, and a server runs for days",
            hint="run it once with oarlock infer FILE --untrusted --data ROWS.npz, or serve it without --untrusted in a container",
        )
    for module in imports or ():
        import_operators(module)
    if backend not in (None, "onnxruntime"):
        raise ArgumentError(f"--backend can only be onnxruntime, not {backend!r:.60}")
    counts = {"--batch-rows": batch_rows, "--queue": queue, "--connections": connections, "--body-bytes": body_bytes, "--seconds": seconds}
    counts |= {"--rows": rows, "--json-values": json_values, "--answer-bytes": answer_bytes, "--run-bytes": run_bytes}
    for option, value in counts.items():
        if value <= 0:
            raise ArgumentError(f"{option} must be above 0, not {value}")
    limits = ServingLimits(
        batch_rows=batch_rows,
        queue=queue,
        connections=connections,
        body_bytes=body_bytes,
        rows=rows,
        json_values=json_values,
        answer_bytes=answer_bytes,
        run_bytes=run_bytes,
        held_bytes=max(_USUAL.held_bytes, 2 * (body_bytes + answer_bytes)),
        seconds=seconds,
        body_seconds=min(_USUAL.body_seconds, seconds),
        stop_seconds=seconds + 5.0,
    )
    configure_process(threads=threads)
    name = path.stem if name is None else name
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", name):
        raise ArgumentError(f"{name!r:.140} cannot be used in URLs", hint="--name digits")
    loaded = inference.load_model(path)
    model = ServedModel(name, loaded, run_by_onnxruntime(loaded, threads=threads) if backend else None, run_bytes=run_bytes)

    def say(address: str) -> None:
        typer.echo(f"{path.name} at {address}/v2/models/{name}")
        together = f"up to {batch_rows} rows of several requests are run together" if batch_rows > 1 else "each request is run alone"
        typer.echo(f"each request is run alone: {model.rows.reason}" if model.rows.symbol is None else together)

    if not serve_model(model, host=host, port=port, limits=limits, ready=say):
        typer.echo("stopped before all accepted requests were answered", err=True)
        os._exit(1)  # without waiting for unfinished runs
