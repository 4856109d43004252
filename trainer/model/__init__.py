"""The acoustic model, in the order of its flow.

config (sizes) -> tokens (blanks between symbols, masks) -> layers (blocks) -> encoder -> aligner (which token speaks in
which frame) -> durations -> decoder (velocity of the flow) -> flow (training target, sampler) -> draws (what chance
decides) -> losses -> acoustic (all of it joined) -> ema (the averaged weights that speak).
"""
