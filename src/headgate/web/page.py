"""The front page: what runs here, for a person who opens the address in a browser."""

from __future__ import annotations

from html import escape
from string import Template

#: How every page of ours begins.
BEGINNING = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
"""

_PAGE = Template(
    BEGINNING
    + """\
<title>Headgate</title>
<style>
body { font: 1.0625rem/1.6 system-ui, sans-serif; color: #1b2a30; background: #f4f7f7; margin: 0 }
main { max-width: 38rem; margin: 12vh auto; padding: 0 1.5rem }
h1 { font-size: 2rem; margin: 0 0 .5rem }
code { background: #e3ebec; padding: .1rem .35rem; border-radius: .25rem }
small { color: #55676d }
a { color: #0b6273 }
@media (prefers-color-scheme: dark) {
body { color: #dfe8ea; background: #11191c }
code { background: #22323a }
small { color: #9db0b6 }
a { color: #7cc7d8 }
}
</style>
</head>
<body>
<main>
<h1>Headgate</h1>
<p>This machine keeps one person's records. Programs and AI agents read them here,
each only what the owner has granted to it.</p>
<p>The server is running. <code>/healthz</code> says so to programs.
<a href="/docs">/docs</a> tells how to call it.</p>
<p><small>Version $version</small></p>
</main>
</body>
</html>
"""
)


def front_page(version: str) -> str:
    """Write the page."""
    return _PAGE.substitute(version=escape(version))
