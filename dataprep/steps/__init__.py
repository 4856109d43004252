"""One utterance in, one out, or a `Drop` with its reason. Plain functions: no files, no Dask."""
