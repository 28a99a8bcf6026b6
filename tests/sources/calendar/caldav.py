"""A real CalDAV and CardDAV server on this machine: Radicale, with one account."""

import base64
import threading
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import radicale
import radicale.config

USER, PASSWORD = "ada", "a pass word"


#: What makes a collection that is an address book.
ADDRESS_BOOK = (
    '<mkcol xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:carddav"><set><prop><resourcetype><collection/>'
    "<C:addressbook/></resourcetype><displayname>{}</displayname></prop></set></mkcol>"
)


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_arguments) -> None:
        pass


class _Threads(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class CalDavServer:
    """The server, and what a calendar program does with it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.seen: list[tuple[str, str]] = []

    def send(self, method: str, path: str, body: str = "") -> None:
        pair = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        kind = "text/vcard" if path.endswith(".vcf") else "text/xml" if method == "MKCOL" else "text/calendar"
        headers = {"Authorization": f"Basic {pair}", "Content-Type": kind}
        request = urllib.request.Request(
            self.url + path, method=method, headers=headers, data=body.encode() or None
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            answer.read()

    def make_calendar(self, name: str) -> None:
        self.send("MKCALENDAR", f"/{USER}/{name}/")

    def make_address_book(self, name: str) -> None:
        self.send("MKCOL", f"/{USER}/{name}/", ADDRESS_BOOK.format(name))

    def put_card(self, book: str, uid: str, name: str, *lines: str) -> None:
        card = (
            "BEGIN:VCARD",
            "VERSION:3.0",
            f"UID:{uid}",
            f"FN:{name}",
            f"N:{name};;;;",
            *lines,
            "END:VCARD",
            "",
        )
        self.send("PUT", f"/{USER}/{book}/{uid}.vcf", "\r\n".join(card))

    def put(self, calendar: str, uid: str, **properties: str) -> None:
        self.send("PUT", f"/{USER}/{calendar}/{uid}.ics", ics(uid, **properties))

    def delete(self, collection: str, name: str) -> None:
        """Delete an object, by its UID if it is an event."""
        self.send("DELETE", f"/{USER}/{collection}/{name if '.' in name else f'{name}.ics'}")


def ics(*uids: str, **properties: str) -> str:
    lines = {
        "DTSTAMP": "20260301T080000Z",
        "DTSTART": "20260302T090000Z",
        "DTEND": "20260302T100000Z",
        "SUMMARY": "Lock inspection",
        **properties,
    }
    events = "".join(
        f"BEGIN:VEVENT\r\nUID:{uid}\r\n"
        + "".join(f"{name}:{value}\r\n" for name, value in lines.items())
        + "END:VEVENT\r\n"
        for uid in uids
    )
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//y//EN\r\n{events}END:VCALENDAR\r\n"


@contextmanager
def caldav_server(directory: Path):
    (directory / "users").write_text(f"{USER}:{PASSWORD}\n")
    configuration = radicale.config.load()
    configuration.update(
        {
            "auth": {
                "type": "htpasswd",
                "htpasswd_filename": str(directory / "users"),
                "htpasswd_encryption": "plain",
                "delay": "0",
            },
            "storage": {"filesystem_folder": str(directory / "store")},
            "logging": {"level": "critical"},
        },
        "test",
    )
    application = radicale.Application(configuration)
    started: list[CalDavServer] = []

    def noted(environ, start_response):
        if started:
            started[0].seen.append((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
        return application(environ, start_response)

    with make_server("127.0.0.1", 0, noted, _Threads, _Quiet) as server:
        started.append(CalDavServer(f"http://127.0.0.1:{server.server_port}"))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield started[0]
        finally:
            server.shutdown()
            thread.join(20)
