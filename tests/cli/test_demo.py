from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx2

ROOT = Path(__file__).parents[2]


def test_the_demo_prints_what_an_agent_needs_and_leaves_nothing_behind(tmp_path: Path):
    process = subprocess.Popen(
        [sys.executable, "-m", "headgate", "serve", "--demo", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={"TMPDIR": str(tmp_path), "HEADGATE_RATE_LIMIT": "0", "HEADGATE_SEMANTIC_MODEL": "off"},
    )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(10)]
        shown = "".join(lines)
        url = re.search(r"MCP URL +(\S+)", shown)[1]
        token = re.search(r"token +(\S+)", shown)[1]
        assert (
            f'claude mcp add --transport http headgate {url} --header "Authorization: Bearer {token}"'
            in shown
        )
        assert len(re.findall(r"^  - .*\?$", shown, re.MULTILINE)) == 3
        index = call(url, token, "schema")
        assert [index["data"]["connector_count"], index["data"]["stream_count"]] == [2, 4]
        counted = sum(
            stream["record_count"] for one in index["data"]["connectors"] for stream in one["streams"]
        )
        assert 4900 < counted < 5200
        refusal = call(url, token, "query_records", stream="messages")
        assert refusal["error"]["code"] == "ambiguous_connection"
        assert len(refusal["error"]["available_connections"]) == 4
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        process.stdout.close()
    assert list(tmp_path.iterdir()) == []


def call(url: str, token: str, tool: str, **arguments: str) -> dict:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    headers["MCP-Protocol-Version"] = "2025-11-25"
    answer = httpx2.post(url, json=body, headers=headers, trust_env=False, timeout=30)
    return json.loads(answer.text)["result"]["structuredContent"]


def test_make_run_runs_the_demo():
    assert "headgate serve --demo" in (ROOT / "Makefile").read_text(encoding="utf-8")
