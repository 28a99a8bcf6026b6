"""Documents: PDF, Word and OpenDocument files as text, page by page."""
