"""From recordings and transcripts to clean, validated, length-indexed shards."""
