"""The program that the suite starts: passes the scenario to the waiting test, and exits with its result.

The client itself runs in the test's process; starting Python and its libraries forty times would take longer
than the whole suite.
"""

import json
import os
import socket
import sys

PREFIX = "MCP_CONFORMANCE_"

scenario = {name.removeprefix(PREFIX): value for name, value in os.environ.items() if name.startswith(PREFIX)}
with socket.socket(socket.AF_UNIX) as test:
    test.connect(sys.argv[1])
    test.sendall(json.dumps({**scenario, "URL": sys.argv[-1]}).encode() + b"\n")
    result = test.makefile("r").readline().strip()
sys.exit(int(result or "1"))
