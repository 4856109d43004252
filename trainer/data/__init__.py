"""From a shard set to batches: epoch plan, sampler, dataset, Lightning data module."""
