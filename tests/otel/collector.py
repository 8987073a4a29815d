"""A collector for tests: OTLP over HTTP on loopback, in a thread; it reads what it gets, refuses it, or never answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Literal

from attrs import define, field
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

Mood = Literal["takes", "500", "503", "hangs"]


def plain(attributes: Any) -> dict[str, Any]:
    """Attributes of OTLP as plain values."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@define
class Collector:
    url: str = ""
    #: Spans, each with the attributes of its resource.
    spans: list[tuple[dict[str, Any], Any]] = field(factory=list)
    #: The last export of each instance, by the id of that: metrics by name.
    metrics: dict[str, dict[str, Any]] = field(factory=dict)
    requests: int = 0

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    self.spans += [(plain(resource.resource.attributes), span) for span in scope.spans]
        else:
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                instance = plain(resource.resource.attributes)["service.instance.id"]
                found = {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}
                self.metrics.setdefault(instance, {}).update(found)

    def count(self, name: str) -> int:
        """How often a histogram was recorded, in all instances."""
        return sum(
            point.count
            for metrics in self.metrics.values()
            if name in metrics
            for point in metrics[name].histogram.data_points
        )


@contextmanager
def collecting(mood: Mood = "takes") -> Iterator[Collector]:
    """A collector in a thread."""
    collector, over = Collector(), Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.requests += 1
            if mood == "hangs":
                over.wait(30)
            if mood == "takes":
                collector.take(self.path, body)
            self.send_response(int(mood) if mood.isdecimal() else 200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # an exporter may be gone
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield collector
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()
