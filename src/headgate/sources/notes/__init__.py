"""Notes: a folder of Markdown, text and HTML files."""
