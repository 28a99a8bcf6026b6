"""Contacts of address books: vCard files."""
