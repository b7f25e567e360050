#!/usr/bin/env python3
"""Writes the .mat files of testing/files: make_files.py FOLDER. Made with scipy 1.16.3 and h5py 3.16.0.

Element (i, j, k) of each array is (7 i + 13 j + 29 k) mod 101, negative where j is odd and the type has signs, and half of that
in floating point. v5 files are scipy's; version 7.3 ones are laid out as MATLAB does it, with h5py. scipy writes the byte order of
the machine alone: big_endian.mat is written here, from MathWorks' "MAT-File Format".
"""
import os
import struct
import sys

import h5py
import numpy
import scipy.io
import scipy.sparse

SHAPE = (3, 4, 5)
CLASSES = ["double", "single", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def array(name, shape=SHAPE):
    i, j, k = numpy.indices(shape)
    values = (7 * i + 13 * j + 29 * k) % 101
    if not name.startswith("uint"):
        values = numpy.where(j % 2 == 1, -values, values)
    if name in ("double", "single"):
        values = values / 2
    return values.astype({"double": "float64", "single": "float32"}.get(name, name))


def big_endian(path):
    values = array("int16")
    def element(kind, data):
        return struct.pack(">ii", kind, len(data)) + data + bytes(-len(data) % 8)
    matrix = (element(6, struct.pack(">II", 10, 0)) + element(5, struct.pack(">3i", *SHAPE)) + element(1, b"values_be") +
              element(3, values.astype(">i2").tobytes("F")))
    with open(path, "wb") as file:
        file.write(b"MATLAB 5.0 MAT-file".ljust(116) + bytes(8) + struct.pack(">H", 0x0100) + b"MI" + element(14, matrix))


def version_7_3(path):
    with h5py.File(path, "w", userblock_size=512) as file:
        for name in CLASSES:
            filters = {"chunks": (5, 4, 3), "compression": "gzip"} if name == "double" else {}
            data = file.create_dataset(name, data=array(name).transpose(), **filters)
            data.attrs["MATLAB_class"] = numpy.bytes_(name)
        group = file.create_group("a_struct")
        group.attrs["MATLAB_class"] = numpy.bytes_("struct")
        text = file.create_dataset("text", data=numpy.array([[97], [98]], "uint16"))
        text.attrs["MATLAB_class"] = numpy.bytes_("char")
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(116) + bytes(8) + struct.pack("<H", 0x0200) + b"IM")


def main():
    os.chdir(sys.argv[1])
    arrays = {name: array(name) for name in CLASSES}
    scipy.io.savemat("plain.mat", arrays, do_compression=False)
    scipy.io.savemat("compressed.mat", {**arrays, "x": numpy.array([[5]], "uint8")}, do_compression=True)  # a small element too
    scipy.io.savemat("cell.mat", {"c": numpy.array([1, "a"], dtype=object)})
    scipy.io.savemat("struct.mat", {"s": {"a": 1}})
    scipy.io.savemat("sparse.mat", {"sp": scipy.sparse.csc_matrix(numpy.eye(3))})
    scipy.io.savemat("complex.mat", {"z": numpy.array([1 + 2j])})
    scipy.io.savemat("text.mat", {"t": "hello"})
    scipy.io.savemat("one.mat", {"only": array("uint16", (4, 6, 2))}, do_compression=True)
    big_endian("big_endian.mat")
    os.makedirs("pines", exist_ok=True)
    i, j, k = numpy.indices((6, 7, 4))
    truth = ((i + j) % 4)[:, :, 0].astype("uint8")
    scipy.io.savemat("pines/Indian_pines_gt.mat", {"y": truth}, do_compression=True)
    scipy.io.savemat("pines/Indian_pines_corrected.mat", {"cube": (100 * i + 10 * j + k * k).astype("uint16")})
    version_7_3("v73.mat")


main()
