"""Lists of cycles and operations: filtered, sorted, searched, a page at a time."""
