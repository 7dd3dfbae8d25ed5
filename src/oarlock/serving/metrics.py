"""The Prometheus metrics of a server."""

from typing import Any

from oarlock.serving.extra import require_extra

__all__ = ["Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The metrics of one server, in a separate registry."""

    def __init__(self) -> None:
        client: Any = require_extra("prometheus_client")
        registry = self._registry = client.CollectorRegistry()
        self._client = client
        self.requests = client.Counter("oarlock_requests", "Requests answered", ["route", "status"], registry=registry)
        self.seconds = client.Histogram(
            "oarlock_request_seconds", "Time from request head to answer", ["route"], buckets=_SECONDS, registry=registry
        )
        self.in_flight = client.Gauge("oarlock_requests_in_flight", "Requests not answered yet", registry=registry)
        self.waiting = client.Gauge("oarlock_queue_length", "Requests waiting to run", registry=registry)
        self.connections = client.Gauge("oarlock_connections", "Open connections", registry=registry)
        self.held_bytes = client.Gauge("oarlock_held_bytes", "Bytes of requests and answers in memory", registry=registry)
        self.refused = client.Counter("oarlock_refused", "Refused requests and closed connections, by limit", ["limit"], registry=registry)
        self.batch_requests = client.Histogram("oarlock_batch_requests", "Requests in one run", buckets=_COUNTS, registry=registry)
        self.batch_rows = client.Histogram("oarlock_batch_rows", "Rows in one run", buckets=_COUNTS, registry=registry)
        self.run_seconds = client.Histogram("oarlock_run_seconds", "Duration of one model run", buckets=_SECONDS, registry=registry)
        client.ProcessCollector(registry=registry)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self.requests.labels(route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def ran(self, requests: int, rows: int, seconds: float) -> None:
        """Count a run."""
        self.batch_requests.observe(requests)
        self.batch_rows.observe(rows)
        self.run_seconds.observe(seconds)

    def page(self) -> tuple[bytes, str]:
        """Return the metrics page and its media type."""
        return self._client.generate_latest(self._registry), self._client.CONTENT_TYPE_LATEST
