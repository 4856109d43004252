"""What one worker does with one slice: reads files, applies steps, writes one file, reports. Knows nothing of Dask."""
