"""Audio to features: what a `FeatureSpec` describes, computed."""
