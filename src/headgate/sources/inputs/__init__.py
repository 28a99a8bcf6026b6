"""What a person gives to import: files, directories and archives, all read the same way."""
