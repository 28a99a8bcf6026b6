"""What is counted about requests, in the text format of Prometheus."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass(slots=True)
class Metrics:
    """Requests by route and status, their time by route, and how many are under way."""

    requests: defaultdict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    under_way: int = 0

    def record(self, route: str, status: int, seconds: float) -> None:
        """Count a request that has ended."""
        self.requests[route, status] += 1
        self.seconds[route] += seconds

    def text(self) -> str:
        """Write the numbers the way Prometheus reads them."""
        lines = ["# TYPE headgate_requests_total counter"]
        lines += [
            f'headgate_requests_total{{route="{route}",status="{status}"}} {count}'
            for (route, status), count in sorted(self.requests.items())
        ]
        lines.append("# TYPE headgate_request_seconds_sum counter")
        lines += [
            f'headgate_request_seconds_sum{{route="{route}"}} {total:.6f}'
            for route, total in sorted(self.seconds.items())
        ]
        lines += ["# TYPE headgate_requests_under_way gauge", f"headgate_requests_under_way {self.under_way}"]
        return "\n".join(lines) + "\n"
