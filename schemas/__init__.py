"""What stands on disk and what passes between modules, described once. Knows nothing of the other packages."""
