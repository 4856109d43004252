"""From text to sound: voice (a checkpoint that speaks) and vocoder (log-mel to wave)."""
