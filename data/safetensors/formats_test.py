"""Compares data/safetensors with Hugging Face's library: formats_test.py PROBE."""

import json
import os
import random
import subprocess
import sys
import unittest

import numpy as np
from safetensors import SafetensorError, TensorSpec, deserialize, safe_open, serialize
from safetensors.numpy import load_file, save_file

PROBE = os.path.abspath(sys.argv.pop(1))
FOLDER = os.path.join(os.environ["TEST_TMPDIR"], "formats")
os.makedirs(FOLDER)

# Their name for the element type -> (name in the file, bytes).
TYPES = {
    "bool": ("BOOL", 1), "uint8": ("U8", 1), "int8": ("I8", 1), "float8_e5m2": ("F8_E5M2", 1),
    "float8_e4m3fn": ("F8_E4M3", 1), "int16": ("I16", 2), "uint16": ("U16", 2), "float16": ("F16", 2),
    "bfloat16": ("BF16", 2), "int32": ("I32", 4), "uint32": ("U32", 4), "float32": ("F32", 4), "float64": ("F64", 8),
    "int64": ("I64", 8), "uint64": ("U64", 8),
}


def path(name):
    return os.path.join(FOLDER, name)


def probe(*arguments):
    return subprocess.run([PROBE, *map(str, arguments)], check=True, stdout=subprocess.PIPE).stdout.decode()


def contents(name):
    with open(name, "rb") as file:
        return file.read()


def put(name, data):
    with open(path(name), "wb") as file:
        file.write(data)
    return path(name)


def theirs(tensors, metadata=None):
    """Bytes of a file by their library from {name: (their type, shape, bytes)}."""
    arrays = {name: np.frombuffer(data + b"\0", np.uint8) for name, (_, _, data) in tensors.items()}
    specs = {
        name: TensorSpec(dtype=dtype, shape=shape, data_ptr=arrays[name].ctypes.data, data_len=len(data))
        for name, (dtype, shape, data) in tensors.items()
    }
    return serialize(specs, metadata)


def random_tensors(draw):
    tensors = {}
    for _ in range(draw.randrange(12)):
        dtype = draw.choice(list(TYPES))
        shape = [draw.choice([0, 1, 2, 3, 7]) for _ in range(draw.randrange(4))]
        count = int(np.prod(shape, dtype=int)) * TYPES[dtype][1]
        data = bytes(draw.randrange(2 if dtype == "bool" else 256) for _ in range(count))
        name = "".join(draw.choice("abz.019_A/\"\\\n\x01\x7f\u00e9\u4e2d\U0001f600") for _ in range(draw.randrange(9)))
        tensors[name] = (dtype, shape, data)
    return tensors


def numpy_tensors():
    draw = np.random.default_rng(5)
    tensors = {"F64": draw.normal(size=(3, 4)), "F32": np.float32(draw.normal(size=7)), "BOOL": np.array([True, False])}
    tensors["F32"][:3] = np.nan, -np.inf, -0.0
    for bits in (8, 16, 32, 64):
        for kind, name in (("int", "I"), ("uint", "U")):
            limits = np.iinfo(kind + str(bits))
            middle = draw.integers(limits.min, limits.max, size=4, dtype=limits.dtype)
            tensors[name + str(bits)] = np.append(middle, np.array([limits.min, limits.max], limits.dtype))
    tensors["scalar"] = np.array(0.1)
    tensors["none"] = np.zeros((2, 0), np.int16)
    return tensors


class Values(unittest.TestCase):
    def test_they_read_our_values(self):
        probe("formula", path("ours"))
        ramp = np.arange(6)
        with np.errstate(over="ignore"):
            expected = {
                "i8": (-128 + 50 * ramp).astype(np.int8),
                "i16": (-32768 + 13000 * ramp).astype(np.int16),
                "i32": (-2147483647 + 800000000 * ramp).astype(np.int32),
                "i64": np.array([-9000000000000000001 + 3600000000000000000 * i for i in range(6)], np.int64),
                "u64": np.array([7 + 3600000000000000000 * i for i in range(6)], np.uint64),
                "u8": (51 * ramp).astype(np.uint8),
                "f64": np.add.accumulate(np.array([-1.5] + 5 * [0.1])),
                "f16": np.array([1, -2, 65504, 2.0**-24, np.inf, -0.0], np.float16),
                "bool": np.array([True, False, False, True, True, False]),
            }
        expected = {name: value.reshape(2, 3) for name, value in expected.items()}
        expected["f32"] = np.add.accumulate(np.array([-1.5] + 5 * [0.1], np.float32)).reshape(3, 1, 2)
        expected["scalar"] = np.array(-1.5)
        expected["none"] = np.zeros((0, 4), np.float32)
        found = load_file(path("ours"))
        self.assertEqual(set(found), set(expected))
        for name, value in expected.items():
            self.assertEqual((found[name].dtype, found[name].shape), (value.dtype, value.shape), name)
            self.assertEqual(found[name].tobytes(), value.tobytes(), name)
        with safe_open(path("ours"), framework="np") as file:
            self.assertEqual(file.metadata(), {"format": "np", "note": "two\nlines, \u00e9"})

    def test_we_read_their_values(self):
        tensors = numpy_tensors()
        save_file(tensors, path("theirs"), {"format": "np", "a": "b", "\u00e9": "\n"})
        found = json.loads(probe("values", path("theirs")))
        self.assertEqual(found["metadata"], {"format": "np", "a": "b", "\u00e9": "\n"})
        self.assertEqual(set(found["tensors"]), set(tensors))
        for name, value in tensors.items():
            entry = found["tensors"][name]
            self.assertEqual(entry["dtype"], TYPES[value.dtype.name][0])
            self.assertEqual(entry["shape"], list(value.shape))
            convert = float if value.dtype.kind == "f" else int
            values = np.array([convert(x) for x in entry["values"]], value.dtype).reshape(value.shape)
            np.testing.assert_array_equal(values, value, err_msg=name)


class Bytes(unittest.TestCase):
    def test_every_type_byte_for_byte(self):
        tensors = {
            "t." + dtype: (dtype, [3, 2], bytes((7 * i + size) % 256 if dtype != "bool" else i % 2 for i in range(6 * size)))
            for dtype, (_, size) in TYPES.items()
        }
        original = put("original", theirs(tensors, {"format": "pt"}))
        probe("copy", original, path("copied"))
        self.assertEqual(contents(path("copied")), contents(original))
        found = json.loads(probe("values", original))["tensors"]
        self.assertEqual({name: entry["dtype"] for name, entry in found.items()},
                         {"t." + dtype: name for dtype, (name, _) in TYPES.items()})

    def test_random_sets_byte_for_byte(self):
        draw = random.Random(11)
        for _ in range(60):
            tensors = random_tensors(draw)
            original = put("original", theirs(tensors, draw.choice([None, {"format": "pt"}, {"\n\u00e9": "\"x\\"}])))
            probe("copy", original, path("copied"))
            self.assertEqual(contents(path("copied")), contents(original), tensors.keys())

    def test_they_read_our_bytes(self):
        tensors = random_tensors(random.Random(12))
        self.assertGreater(len(tensors), 3)
        probe("copy", put("original", theirs(tensors)), path("copied"))
        found = {name: (entry["dtype"], list(entry["shape"]), bytes(entry["data"]))
                 for name, entry in deserialize(contents(path("copied")))}
        self.assertEqual(found, {name: (TYPES[dtype][0], shape, data) for name, (dtype, shape, data) in tensors.items()})


class Shards(unittest.TestCase):
    def setUp(self):
        self.folder = path(self._testMethodName)
        os.makedirs(self.folder)
        self.tensors = {"h.%d.w\u00e9" % i: np.full((i + 1, 5), i, np.float32) for i in range(9)}

    def test_they_read_our_shards(self):
        save_file(self.tensors, path("one"))
        probe("shard", path("one"), self.folder, 400)
        text = contents(os.path.join(self.folder, "model.safetensors.index.json")).decode()
        index = json.loads(text)
        self.assertEqual(text, json.dumps(index, indent=2, sort_keys=True) + "\n")
        self.assertEqual(index["metadata"], {"total_size": sum(value.nbytes for value in self.tensors.values())})
        self.assertEqual(set(index["weight_map"]), set(self.tensors))
        self.assertGreater(len(set(index["weight_map"].values())), 2)
        for name, file in index["weight_map"].items():
            shard = load_file(os.path.join(self.folder, file))
            self.assertLessEqual(sum(value.nbytes for value in shard.values()), 400)
            np.testing.assert_array_equal(shard[name], self.tensors[name])

    def test_we_read_their_shards(self):
        names = list(self.tensors)
        shards = {"model-00001-of-00002.safetensors": names[:4], "model-00002-of-00002.safetensors": names[4:]}
        for file, part in shards.items():
            save_file({name: self.tensors[name] for name in part}, os.path.join(self.folder, file))
        with open(os.path.join(self.folder, "model.safetensors.index.json"), "w") as index:
            json.dump({"metadata": {"total_size": 1.5e3}, "weight_map": {n: f for f, part in shards.items() for n in part}},
                      index)
        probe("join", self.folder, path("joined"))
        save_file(self.tensors, path("whole"))
        self.assertEqual(contents(path("joined")), contents(path("whole")))


class Damaged(unittest.TestCase):
    """We refuse every file that the library refuses, and accept the others unless the format's specification forbids them."""

    STRICTER = ("twice", "duplicate name", "has the key", "expected a JSON object", "is null", "does not begin", "is a list")
    UNKNOWN_HERE = ("F4", "F6_", "F8_E8", "C64", "FNUZ")

    def damaged(self, draw, good):
        size = int.from_bytes(good[:8], "little")
        header, data = bytearray(good[8:8 + size]), good[8 + size:]
        for _ in range(draw.randrange(1, 4)):
            at, letter = draw.randrange(len(header)), draw.choice(b"{}[]\",:0123456789-.eE\\u \nFIU")
            kind = draw.randrange(4)
            if kind == 0:
                header[at] = letter
            elif kind == 1:
                header.insert(at, letter)
            elif kind == 2:
                del header[at:at + draw.randrange(1, 9)]
            else:
                header[at:at] = header[at:at + draw.randrange(1, 90)]
        if draw.randrange(20) == 0:
            data = data[:-1]
        return len(header).to_bytes(8, "little") + bytes(header) + data

    def test_the_same_verdict(self):
        draw = random.Random(13)
        tensors = {
            "layers.10.attention.query.weight": ("float32", [2, 3], bytes(24)),
            "layers.10.attention.query.bias": ("uint8", [4], bytes(4)),
            "normalization.running_count": ("int16", [], bytes(2)),
        }
        good = bytes(theirs(tensors, {"description": "nothing but three tensors"}))
        files = [good] + [self.damaged(draw, good) for _ in range(4000)]
        names = [put("damaged_%d" % i, file) for i, file in enumerate(files)]
        verdicts = probe("verdicts", put("list", "\n".join(names).encode() + b"\n")).splitlines()
        self.assertEqual(len(verdicts), len(files), "one line for each")
        both = 0
        for file, verdict in zip(files, verdicts):
            try:
                deserialize(file)
                if verdict != "ok":
                    self.assertTrue(any(word in verdict for word in self.STRICTER) or
                                    ("unknown dtype" in verdict and any(word in verdict for word in self.UNKNOWN_HERE)),
                                    (verdict, file))
                both += verdict == "ok"
            except SafetensorError as error:
                self.assertNotEqual(verdict, "ok", (error, file))
        self.assertEqual(verdicts[0], "ok")
        self.assertGreater(both, 100)
        self.assertLess(both, 3000)


if __name__ == "__main__":
    unittest.main()
