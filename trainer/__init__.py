"""From shards to a voice: epoch plan, loader, flow-matching model, synthesis."""
