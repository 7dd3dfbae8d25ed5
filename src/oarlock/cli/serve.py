"""`oarlock serve`: answer requests with a model file."""

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from oarlock import inference
from oarlock.cli.imported_operators import Imports, import_operators
from oarlock.errors import ArgumentError
from oarlock.runtime.process import configure_process
from oarlock.serving.limits import ServingLimits
from oarlock.serving.served_model import ServedModel, run_by_onnxruntime
from oarlock.serving.server import serve as serve_model

__all__ = ["serve"]

_USUAL = ServingLimits()


def serve(
    path: Annotated[Path, typer.Argument(metavar="MODEL.safetensors", help="A model file.")],
    name: Annotated[str | None, typer.Option(help="What the model is called in addresses; the name of the file, unless given.")] = None,
    host: Annotated[str, typer.Option(help="Where to listen. 127.0.0.1 is this machine alone; 0.0.0.0 is everybody.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes one that is free.")] = 8000,
    threads: Annotated[int | None, typer.Option(help="Among how many threads a kernel is divided; the cores, unless given.")] = None,
    batch_rows: Annotated[int, typer.Option(help="Rows of several requests that are run at once; 1 runs each alone.")] = _USUAL.batch_rows,
    queue: Annotated[int, typer.Option(help="Requests that wait; more are refused with status 429.")] = _USUAL.queue,
    connections: Annotated[int, typer.Option(help="Open connections; more are refused.")] = _USUAL.connections,
    body_bytes: Annotated[int, typer.Option(help="The largest body; a larger one is refused with status 413.")] = _USUAL.body_bytes,
    rows: Annotated[int, typer.Option(help="Rows of a request and of its answer; more have status 413.")] = _USUAL.rows,
    json_values: Annotated[int, typer.Option(help="Numbers, texts and lists in the JSON of a request.")] = _USUAL.json_values,
    answer_bytes: Annotated[int, typer.Option(help="The largest answer; a larger one has status 413.")] = _USUAL.answer_bytes,
    run_bytes: Annotated[int, typer.Option(help="Values of a run in memory at once; more have status 413.")] = _USUAL.run_bytes,
    seconds: Annotated[float, typer.Option(help="From a request to its answer; later ones have status 503.")] = _USUAL.seconds,
    backend: Annotated[str | None, typer.Option(help="onnxruntime: ONNX Runtime computes; the bits are its own.")] = None,
    untrusted: Annotated[bool, typer.Option("--untrusted", help="Refused: a stranger's file is not served.")] = False,
    imports: Imports = None,
) -> None:
    """Serve a model by HTTP: the Open Inference Protocol v2, and plain JSON.

    [bold]GET /v2/models/NAME[/] says what it takes, [bold]POST /v2/models/NAME/infer[/] and [bold]POST /infer[/] compute,
    [bold]GET /v2/health/ready[/] and [bold]GET /metrics[/] tell how it is.

    SIGTERM and Ctrl-C stop it: what was accepted is answered, and the status is 0.
    """
    if untrusted:
        raise ArgumentError(
            "a stranger's file is not served: a run of it has limits in a process of its own, and a server goes on for days",
            hint="oarlock infer FILE --untrusted --data ROWS.npz runs it once; serve it without --untrusted in a container of its own",
        )
    for module in imports or ():
        import_operators(module)
    if backend not in (None, "onnxruntime"):
        raise ArgumentError(f"--backend is onnxruntime, or left out, not {backend!r:.60}")
    counts = {"--batch-rows": batch_rows, "--queue": queue, "--connections": connections, "--body-bytes": body_bytes, "--seconds": seconds}
    counts |= {"--rows": rows, "--json-values": json_values, "--answer-bytes": answer_bytes, "--run-bytes": run_bytes}
    for option, value in counts.items():
        if value <= 0:
            raise ArgumentError(f"{option} is above 0, not {value}")
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
        raise ArgumentError(f"{name!r:.140} is no name for addresses", hint="--name digits")
    loaded = inference.load_model(path)
    model = ServedModel(name, loaded, run_by_onnxruntime(loaded, threads=threads) if backend else None)

    def say(address: str) -> None:
        typer.echo(f"{path.name} at {address}/v2/models/{name}")
        together = f"up to {batch_rows} rows of several requests are run together" if batch_rows > 1 else "each request is run alone"
        typer.echo(f"each request is run alone: {model.rows.reason}" if model.rows.symbol is None else together)

    if not serve_model(model, host=host, port=port, limits=limits, ready=say):
        typer.echo("stopped before all that was accepted was answered", err=True)
        os._exit(1)  # a run that has not ended would be waited for
