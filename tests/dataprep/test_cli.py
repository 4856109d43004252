import subprocess
import sys

from dataprep.cli import Shares, Size


def test_help_loads_nothing_heavy_and_is_quick():
    script = """
import sys, time
began = time.process_time()
from dataprep.cli import main
try:
    main(["--help"])
except SystemExit:
    pass
heavy = {"torch", "dask", "distributed", "librosa", "numpy", "pyarrow", "jieba"} & set(sys.modules)
assert not heavy, heavy
assert time.process_time() - began < 0.5
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "ingest" in done.stdout


def test_sizes_and_shares():
    assert [Size().convert(text, None, None) for text in ("1", "2K", "256M", "1.5G", "3MiB", "4GB")] == [
        1, 2048, 256 * 2**20, 3 * 2**29, 3 * 2**20, 4 * 2**30
    ]  # fmt: skip
    assert Shares().convert("0.8,0.1,0.1", None, None) == (0.8, 0.1, 0.1)
