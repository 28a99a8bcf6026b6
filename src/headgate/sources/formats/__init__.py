"""The syntax that several kinds of files share, and the values in it: text, JSON, XML, content lines, SQLite."""
