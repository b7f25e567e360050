"""What h5py makes of a checkpoint: h5py_test.py RUN_ON_RANKS WRITE_CHECKPOINT."""

import json
import os
import shutil
import struct
import subprocess
import sys
import unittest
import zlib

import h5py
import numpy as np

RUN_ON_RANKS, WRITE_CHECKPOINT = map(os.path.abspath, sys.argv[1:3])
del sys.argv[1:3]
FOLDER = os.path.join(os.environ["TEST_TMPDIR"], "h5py")

# What h5py shows: bfloat16, which numpy does not have, as float32.
SHOWN = {"bfloat16": "float32"}


def written_by(ranks, *boxes):
    """Writes a checkpoint on `ranks` ranks (argument "boxes": of boxes), moves it, returns its path."""
    made, moved = (os.path.join(FOLDER, "_".join([word, str(ranks), *boxes])) for word in ("made", "moved"))
    for folder in (made, moved):
        shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(FOLDER, exist_ok=True)
    subprocess.run([RUN_ON_RANKS, str(ranks), WRITE_CHECKPOINT, made, *boxes], check=True)
    os.rename(made, moved)
    with open(os.path.join(moved, "latest"), encoding="utf-8") as latest:
        return os.path.join(moved, latest.read().strip())


def expected(tensor, seed):
    """The tensor's elements, by the formula in write_checkpoint.cc."""
    numbers = np.arange(int(np.prod(tensor["shape"], dtype=np.int64)), dtype=np.uint64) + np.int64(seed).astype(np.uint64)
    bits = (numbers * np.uint64(6364136223846793005)) >> np.uint64(20)
    if "float" in tensor["dtype"]:
        values = ((bits % np.uint64(255)).astype(np.float64) - 127) / 8
    elif tensor["dtype"] == "bool":
        values = bits & np.uint64(1)
    else:
        values = bits
    return values.astype(SHOWN.get(tensor["dtype"], tensor["dtype"])).reshape(tensor["shape"])


def pieces_of(index):
    """Yields tensor, rank, box, begin and end of each piece; the box as a tuple of slices, () for the whole tensor."""
    contents = json.loads(bytes(index["plait/contents"][:]))
    for number, rank, begin, end, *box in index["plait/pieces"][:]:
        slices = ()
        if box and box[0] >= 0:
            dimensions = len(contents["tensors"][number]["shape"])
            begins, sizes = index["plait/boxes"][box[0]:][:2 * dimensions].reshape(2, dimensions)
            slices = tuple(slice(first, first + size) for first, size in zip(begins, sizes))
        yield number, rank, slices, begin, end


class H5py(unittest.TestCase):
    def setUp(self):
        os.chdir("/")

    def test_every_tensor_is_whole(self):
        for ranks, *boxes in ((1,), (2,), (4,), (1, "boxes"), (2, "boxes"), (4, "boxes")):
            with h5py.File(os.path.join(written_by(ranks, *boxes), "index.h5"), "r") as index:
                contents = json.loads(bytes(index["plait/contents"][:]))
                self.assertEqual((contents["step"], contents["ranks"]), (12, ranks))
                self.assertEqual(json.loads(contents["texts"]["config"]), {"name": "\u00e9"})
                self.assertEqual(len(contents["tensors"]), 55 if boxes else 15)
                for tensor in contents["tensors"]:
                    path = tensor["group"] + "/" + tensor["name"]
                    with self.subTest(ranks=ranks, boxes=boxes, path=path):
                        values = expected(tensor, contents["integers"]["seed." + path])
                        array = index[path]
                        self.assertEqual(array.shape, tuple(tensor["shape"]))
                        self.assertEqual(array[()].dtype, values.dtype)
                        np.testing.assert_array_equal(array[()], values)
                        if values.ndim > 1 and values.shape[0] > 1:
                            np.testing.assert_array_equal(array[1:, ..., 1:], values[1:, ..., 1:])

    def test_bfloat16_is_two_bytes_a_number(self):
        with h5py.File(os.path.join(written_by(2), "index.h5"), "r") as index:
            self.assertEqual(index["model/brain"].id.get_type().get_size(), 2)
            self.assertEqual(index["model/half"].dtype, np.float16)

    def test_what_a_lost_file_held_is_no_number(self):
        self.lose_a_file(written_by(2))
        self.lose_a_file(written_by(2, "boxes"))

    def lose_a_file(self, folder):
        os.remove(os.path.join(folder, "rank-00001.h5"))
        with h5py.File(os.path.join(folder, "index.h5"), "r") as index:
            pieces = list(pieces_of(index))
            contents = json.loads(bytes(index["plait/contents"][:]))
            for number, tensor in enumerate(contents["tensors"]):
                if "float" not in tensor["dtype"] or not tensor["shape"]:
                    continue
                path = tensor["group"] + "/" + tensor["name"]
                values = index[path][()]
                whole = expected(tensor, contents["integers"]["seed." + path])
                for _, rank, box, begin, end in (piece for piece in pieces if piece[0] == number):
                    part = values[box].reshape(-1)[begin:end]
                    if rank == 1:
                        self.assertTrue(np.isnan(part).all(), path)
                    else:
                        np.testing.assert_array_equal(part, whole[box].reshape(-1)[begin:end])

    def test_files_and_checksums_are_as_documented(self):
        self.check_files(written_by(4), False)
        self.check_files(written_by(4, "boxes"), True)

    def check_addresses(self, path):
        """The appended table has the offsets and checksums of the arrays as h5py sees them."""
        with open(path, "rb") as raw:
            data = raw.read()
        self.assertEqual(data[-8:], b"plaitad1")
        crc, size = struct.unpack("<IQ", data[-20:-8])
        text = data[-20 - size:-20]
        self.assertEqual(zlib.crc32(text), crc)
        table = json.loads(text)
        end = len(data) - 20 - size
        found = {}
        with h5py.File(path, "r") as file:
            self.assertEqual(table["format"].encode(), file.attrs["format"])
            self.assertEqual(table["integers"], {k: int(v) for k, v in file.attrs.items() if k != "format"})

            def visit(name, array):
                if not isinstance(array, h5py.Dataset) or array.is_virtual:
                    return
                offset, size = array.id.get_offset(), array.id.get_storage_size()
                entry = [offset if size else 0, size]
                if "crc32" in array.attrs:
                    entry.append(zlib.crc32(data[entry[0]:entry[0] + size]))
                found["/" + name] = entry
            file.visititems(visit)
        self.assertEqual(table["arrays"], found)
        rest, place = b"", 0
        for offset, size, *_ in sorted(found.values()):
            rest += data[place:max(place, offset)]
            place = max(place, offset + size)
        self.assertEqual(table["structure_crc32"], zlib.crc32(rest + data[place:end]))

    def check_files(self, folder, boxes):
        for name in os.listdir(folder):
            self.check_addresses(os.path.join(folder, name))
        with h5py.File(os.path.join(folder, "index.h5"), "r") as index:
            self.assertEqual(index.attrs["format"], b"plait checkpoint")
            self.assertEqual((index.attrs["format_version"], index.attrs["step"]), (3, 12))
            self.assertEqual("boxes" in index["plait"], boxes)
            for name in index["plait"]:
                array = index["plait"][name]
                self.assertEqual(array.attrs["crc32"], zlib.crc32(array[:].tobytes()))
            contents = json.loads(bytes(index["plait/contents"][:]))
            pieces = list(pieces_of(index))
        self.assertEqual(any(box for _, _, box, _, _ in pieces), boxes)
        self.assertEqual(len(contents["shards"]), 4)
        for rank, shard in enumerate(contents["shards"]):
            path = os.path.join(folder, shard["file"])
            self.assertEqual(os.path.getsize(path), shard["bytes"])
            with h5py.File(path, "r") as file, open(path, "rb") as raw:
                self.assertEqual((file.attrs["rank"], file.attrs["step"]), (rank, 12))
                self.assertEqual(file.attrs["format_version"], 3)
                self.assertEqual(bytes(file["plait/rank_state/rng"][:]), b"rank %d" % rank)
                found = []
                for number, _, box, begin, end in (piece for piece in pieces if piece[1] == rank):
                    tensor = contents["tensors"][number]
                    of_box = "[%s]" % ", ".join("%d:%d" % (side.start, side.stop) for side in box) if box else ""
                    array = file["%s/%s%s[%d:%d]" % (tensor["group"], tensor["name"], of_box, begin, end)]
                    raw.seek(array.id.get_offset())
                    data = raw.read(array.id.get_storage_size())
                    chunk = contents["chunk_bytes"]
                    found += [zlib.crc32(data[i:i + chunk]) for i in range(0, len(data), chunk)]
                self.assertEqual(list(file["plait/checksums"][:]), found)
                self.assertEqual(zlib.crc32(file["plait/checksums"][:].tobytes()), shard["checksums_crc32"])


if __name__ == "__main__":
    unittest.main()
