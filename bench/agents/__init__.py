"""What a model pays for everyday questions: an invented year as files, questions about it, and a command that counts calls and bytes."""
