"""Readers and writers of files: our own records, and how facts are spelled in them."""
