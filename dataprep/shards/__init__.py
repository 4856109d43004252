"""Where bytes leave and come back: atomic files, parts, shards, their plan and index, and the reader."""
