"""More than one process: the ranks of a job answer alike, and share the work of finding the answer."""
