from dataprep.shards.storage import ByteRange, FolderStorage
from schemas.dataset import FileInfo
from schemas.errors import FormatError


def test_ranges_of_a_folder(tmp_path):
    (tmp_path / "a.tar").write_bytes(b"0123456789")
    here, gone = (FileInfo(name=name, bytes=10, sha256="0" * 64) for name in ("a.tar", "b.tar"))
    found = FolderStorage(tmp_path).read_ranges([ByteRange(here, 2, 3), ByteRange(gone, 0, 1), ByteRange(here, 8, 9)])
    assert (found[0], found[2]) == (b"234", b"89")
    assert isinstance(found[1], FormatError)
    assert "b.tar: cannot be read: No such file" in str(found[1])
