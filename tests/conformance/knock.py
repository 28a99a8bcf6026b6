"""The program that the suite starts: tells the waiting test what to do, and ends as it was told.

The client itself lives in the test's process; starting Python and its libraries forty times would take longer
than the whole suite.
"""

import json
import os
import socket
import sys

PREFIX = "MCP_CONFORMANCE_"

asked = {name.removeprefix(PREFIX): value for name, value in os.environ.items() if name.startswith(PREFIX)}
with socket.socket(socket.AF_UNIX) as door:
    door.connect(sys.argv[1])
    door.sendall(json.dumps({**asked, "URL": sys.argv[-1]}).encode() + b"\n")
    answer = door.makefile("r").readline().strip()
sys.exit(int(answer or "1"))
