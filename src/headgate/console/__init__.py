"""The owner's console: pages in a browser. Handlers are thin; what may be done is decided in `headgate.auth`."""
