#!/usr/bin/env python3
"""Writes the inputs of corpus/ that are made: make_corpus.py FOLDER. With h5py 3.16.0.

A few small files for each reader, sound ones and ones with a number that is out of its bounds. What a fuzzer found is
beside them under a name that says what was wrong.
"""
import json
import math
import os
import struct
import sys
import zlib

import h5py
import numpy


def safetensors(header, data):
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    return struct.pack("<Q", len(text)) + text + data


def idx(magic, shape, data):
    return struct.pack(f">I{len(shape)}I", magic, *shape) + data


def gzip(data):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def matlab_element(kind, data):
    return struct.pack("<ii", kind, len(data)) + data + bytes(-len(data) % 8)


def matlab(shape, numbers, packed=False, name=b"x"):
    matrix = matlab_element(14, matlab_element(6, struct.pack("<II", 6, 0)) +
                            matlab_element(5, struct.pack(f"<{len(shape)}i", *shape)) + matlab_element(1, name) +
                            matlab_element(9, numbers))
    if packed:
        data = zlib.compress(matrix)
        matrix = struct.pack("<ii", 15, len(data)) + data
    return b"MATLAB 5.0 MAT-file".ljust(116) + bytes(8) + struct.pack("<H", 0x0100) + b"IM" + matrix


def byte_pair(merges, **more):
    printable = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE]
    tokens = [chr(b) if b in printable else None for b in range(256)]
    others = 0
    for b in range(256):
        if tokens[b] is None:
            tokens[b], others = chr(256 + others), others + 1
    tokens += [a + b for a, b in merges] + ["<|endoftext|>"]
    vocabulary = {**{token: i for i, token in enumerate(tokens)}, **more}
    return json.dumps(vocabulary).encode() + b"\0" + "\n".join(f"{a} {b}" for a, b in merges).encode()


def sentence_piece(pieces, byte_pairs=2):
    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data
    model = b""
    for text, score, kind in pieces:
        model += field(1, field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + b"\x18" + bytes([kind]))
    return model + field(2, b"\x18" + bytes([byte_pairs]))


def recordings(rows, table=None, count=None, rate=50.0):
    entries = table or [(1, 0, rows)]
    payload = b"".join(struct.pack("<IIQ", *entry) for entry in entries)
    payload += b"".join(struct.pack("<7h", *([i % 50] * 6), 1 + i % 6) for i in range(rows))
    return struct.pack("<8sIIQdddII", b"PLTHAPT1", 1, count or len(entries), sum(e[2] for e in entries) % 2**64, 1 / 720,
                       0.0175 * math.pi / 180, rate, 0, 0) + payload


def document_index(lengths, documents, kind=8, counts=None):
    pointers = [(2 if kind == 8 else 4) * sum(lengths[:i]) for i in range(len(lengths))]
    counts = counts or (len(lengths), len(documents))
    return (struct.pack("<9sQBQQ", b"MMIDIDX", 1, kind, *counts) + struct.pack(f"<{len(lengths)}i", *lengths) +
            struct.pack(f"<{len(pointers)}q", *pointers) + struct.pack(f"<{len(documents)}q", *documents))


def journal(*records):
    return b"".join(bytes([len(record)]) + record for record in records)


def metric(number, name, *more):
    return b"M" + struct.pack("<I", number) + b"\0".join([name, b"s", b"time", *more]) + b"\0"


def draw(number, *values):
    return b"D" + struct.pack("<q", number) + b"".join(struct.pack("<Id", i, value) for i, value in values)


def png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    pixels = b"".join(b"\0" + bytes(range(i, i + 12)) for i in range(4))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b""))


def contents(**changes):
    index = {"step": 1, "ranks": 2, "chunk_bytes": 1048576,
             "tensors": [{"group": "model", "name": "w", "dtype": "float32", "shape": [4, 3]},
                         {"group": "model", "name": "b", "dtype": "bfloat16", "shape": []}],
             "shards": [{"bytes": 4096, "checksums_crc32": 1}, {"bytes": 4096, "checksums_crc32": 2}],
             "texts": {"a": "b"}, "integers": {"n": 7}}
    return json.dumps({**index, **changes}).encode()


def index(text, columns, pieces, boxes=()):
    numbers = [number for piece in pieces for number in piece]
    return text + b"\0" + bytes([columns, len(numbers)]) + struct.pack(f"<{len(numbers) + len(boxes)}q", *numbers, *boxes)


def checked(file, name, values):
    file[name] = values
    file[name].attrs["crc32"] = zlib.crc32(values.tobytes())


def prepared_files(folder):
    def opened(name, kind, **attributes):
        file = h5py.File(f"{folder}/{name}", "w", libver=("v108", "v110"))
        file.attrs.update({"format": numpy.bytes_(kind), "format_version": 1, "key": numpy.bytes_("k"), "source": numpy.bytes_("s"),
                           **attributes})
        return file
    with opened("prepared_sequences", "plait sequences", synthetic=1, classes=numpy.bytes_("a\nb")) as file:
        for split in ("train", "test"):
            checked(file, split + "/x", numpy.arange(12, dtype="f4").reshape(2, 3, 2))
            checked(file, split + "/y", numpy.arange(2))
            checked(file, split + "/subject", numpy.arange(2))
    with opened("prepared_text", "plait text", tokenizer=numpy.bytes_("t"), vocabulary_size=9, tokenizer_digest=1, characters=9) as file:
        checked(file, "train", numpy.arange(8, dtype="u2"))
        checked(file, "validation", numpy.arange(2, dtype="u2"))
    with opened("features", "plait frame features", made_from=numpy.bytes_("m")) as file:
        checked(file, "features", numpy.arange(6, dtype="f4").reshape(2, 3))


def hdf5_files(folder):
    with h5py.File(folder + "/history", "w", libver=("v108", "v110")) as file:
        file.attrs.update({"format": numpy.bytes_("plait history"), "format_version": 1, "complete": 1})
        file["draw"] = numpy.arange(5)
        file.create_dataset("loss", data=numpy.arange(5.0), chunks=(2,), maxshape=(None,))
        file["loss"].attrs["units"] = numpy.bytes_("1")
        file["draw"].make_scale("draw")
        file["loss"].dims[0].attach_scale(file["draw"])
    with h5py.File(folder + "/dense_groups", "w", libver=("v108", "v110"), track_order=True) as file:
        for i in range(12):
            file[f"metric{i}"] = numpy.arange(3.0)
            file[f"metric{i}"].attrs.update({f"a{k}": k for k in range(10)})
    with h5py.File(folder + "/matlab", "w", userblock_size=512) as file:
        file.create_dataset("x", data=numpy.arange(12.0).reshape(3, 4), chunks=(3, 2), compression="gzip")
        file["x"].attrs["MATLAB_class"] = numpy.bytes_("double")
    with h5py.File(folder + "/huge_shape", "w") as file:
        file.create_dataset("loss", shape=(2**50,), maxshape=(None,), chunks=(1024,), dtype="f8")
    with h5py.File(folder + "/attribute_of_many_numbers", "w") as file:
        file["draw"] = numpy.arange(2)
        file.attrs.update({"format": numpy.bytes_("plait history"), "format_version": numpy.arange(4000)})
    with h5py.File(folder + "/group_in_itself", "w") as file:
        file["loss"] = numpy.arange(3.0)
        for i in range(8):
            file[f"g{i}"] = file["/"]


GPT = {"model_type": "gpt2", "vocab_size": 96, "n_positions": 16, "n_layer": 2, "n_head": 2, "n_embd": 8}
LLAMA = {"model_type": "llama", "vocab_size": 96, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32, "rms_norm_eps": 1e-5,
         "rope_theta": 10000.0, "tie_word_embeddings": True}
VIT = {"model_type": "vit", "image_size": 8, "patch_size": 4, "num_channels": 1, "hidden_size": 12, "num_hidden_layers": 2,
       "num_attention_heads": 3, "intermediate_size": 10, "id2label": {"0": "a", "1": "b"}}
F32 = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
CLUSTER = """name: "one" nodes: 1 ranks_per_node: 2 processors_per_node: 2 memory_gigabytes_per_rank: 8
compute { type: "float32" teraflops: 1 } memory_gigabytes_per_s: 10 activation_gigabytes_per_s: 10
within_node { gigabytes_per_s: 5 latency_us: 1 } between_nodes { gigabytes_per_s: 1 latency_us: 5 }
"""
EVENTS = [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "rank 0"}},
          {"ph": "X", "name": "step", "pid": 0, "tid": 0, "ts": 0, "dur": 10, "args": {"step": 1}},
          {"ph": "X", "name": "all-reduce", "pid": 0, "tid": 1, "ts": 2, "dur": 5, "args": {"bytes": 8, "waited_ms": 0.001}}]
LINE = b" ".join([b"0.25"] * 128) + b"\n"


def inputs():
    yield "safetensors/one", safetensors({"__metadata__": {"format": "pt"}, "w": F32}, bytes(24))
    yield "safetensors/two_types", safetensors({"w": F32, "b": {"dtype": "BF16", "shape": [], "data_offsets": [24, 26]}}, bytes(26))
    yield "safetensors/huge_shape", safetensors({"w": {**F32, "shape": [2**62, 4]}}, bytes(24))
    yield "safetensors/nested", safetensors(b'{"w":' + b"[" * 5000, b"")
    yield "shard_index/two", json.dumps({"metadata": {"total_size": 32}, "weight_map": {"a": "model-00001-of-00002.safetensors",
                                                                                     "b": "model-00002-of-00002.safetensors"}}).encode()
    yield "shard_index/outside", b'{"weight_map": {"a": "../b"}}'
    yield "idx/images", idx(2051, (2, 3, 4), bytes(range(24)))
    yield "idx/labels_packed", gzip(idx(2049, (5,), bytes(range(5))))
    yield "idx/huge_packed", gzip(idx(2051, (2**32 - 1, 65535, 65535), bytes(10)))
    record = b"\7" + bytes(range(256)) * 12
    yield "cifar10/one", record
    yield "cifar10/packed", gzip(record + record)
    yield "cifar10/label_above_nine", gzip(b"\x0a" + record[1:])
    yield "cifar10/cut_short", record[:-1]
    yield "matlab/plain", matlab((2, 3), struct.pack("<6d", *range(6)))
    yield "matlab/packed", matlab((2, 3), struct.pack("<6d", *range(6)), packed=True)
    yield "matlab/huge_shape", matlab((2**31 - 1, 2**31 - 1), bytes(8))
    yield "byte_pair/small", byte_pair([("t", "h"), ("th", "e")])
    yield "byte_pair/nested", b'{"a": ' + b"[" * 5000 + b"\0"
    yield "byte_pair/huge_id", byte_pair([], x=2**62)
    yield "sentence_piece/small", sentence_piece([("<unk>", 0, 2), ("<s>", 0, 3), ("\u2581", -1, 1), ("t", -2, 1), ("h", -3, 1),
                                                  ("th", -0.5, 1), ("cat", -4, 4)])
    yield "document_index/prompts", document_index([2, 3, 0, 4, 1], [0, 2, 2, 5])
    yield "document_index/int32_with_modes", document_index([1000, 5], [0, 1, 2], kind=4) + bytes(2)
    yield "document_index/none", document_index([], [0])
    yield "document_index/sums_beyond_64_bits", document_index([7], [0, 1], counts=(2**64 // 12, 2**61))
    yield "document_line/pair", b'{"prompt": "a\\n", "text": "\\u00fc", "id": [1, {}]}'
    yield "document_line/nested", b'{"text": ' + b"[" * 5000
    yield "recordings/two", recordings(300, [(1, 0, 140), (2, 1, 160)])
    yield "recordings/rate_below_a_filters", recordings(0, [(1, 0, 0)], rate=2.0)
    yield "recordings/rows_beyond_64_bits", recordings(0, [(1, 0, 2**63)])
    yield "har_text/signal", b"\0" + LINE
    yield "har_text/labels", b"\x09" + b"3\n"
    yield "har_text/not_finite", b"\x01" + LINE.replace(b"0.25", b"inf", 1)
    yield "hosts/slurm", b"SLURM_JOB_ID=7\nSLURM_JOB_NODELIST=node[01-03,7]\nSLURM_TASKS_PER_NODE=2(x3),1\nSLURM_NTASKS=7\nSLURM_PROCID=0\n"
    yield "hosts/list", b"node[1-3,007],login1"
    yield "hosts/counts", b"4(x2),1"
    yield "hosts/file", b"a:4\nb slots=2 # two\na:2147483647\n"
    yield "hosts/pbs", b"PBS_JOBID=1\nPBS_NODEFILE=a b\nOMPI_COMM_WORLD_SIZE=2\nOMPI_COMM_WORLD_RANK=1\n"
    for name, text in (("whole", "-12"), ("number", "1.5e-3"), ("list", "4,2"), ("truth", "true"), ("large", "1" * 30)):
        yield "flags/" + name, text.encode()
    yield "flag_file/whole", b"# a run\n--truth\n--count=-12\n--number=1.5e-3\n--a-text=b c\n--list=4,2\n"
    yield "flag_file/quoted", b'--a-text="a\\n\\xc3\\xbc\\" "\r\n\n  --no-truth  \n--old_text="\\010"'
    yield "flag_file/unclosed_quotes", b'--a-text="\n--a-text="\\"\n--a-text=""'
    yield "flag_file/another_flag", b"--truth\n--nuber=1\n"
    yield "flag_file/file_in_a_file", b"--flagfile=/dev/zero\n"
    yield "flag_file/line_break_in_a_number", b'--count="1\\n2"\n'
    yield "journal/two", journal(metric(0, b"loss", b"mean", b"", b"0"), metric(1, b"v", b"", b"i", b"2"),
                                 draw(0, (0, 1.5)), draw(1, (0, 2.5)))
    yield "journal/metric_of_a_huge_number", journal(metric(2**32 - 1, b"loss"), draw(0, (0, 1.0)))
    yield "journal/cut_short", journal(b"M", b"D")
    yield "journal/huge_length", journal(metric(0, b"v", b"", b"i", b"9000000000000000000"), draw(0, (0, 1.0)))
    yield "image/small.png", png()
    frame = b"FRAME\n" + bytes(range(96))
    yield "video/small.y4m", b"YUV4MPEG2 W8 H8 F1:1 C420jpeg\n" + 3 * frame
    yield "cluster/one", CLUSTER.encode()
    yield "trace/step", json.dumps({"traceEvents": EVENTS}).encode()
    yield "trace/huge_numbers", json.dumps([{**event, "pid": 1e300, "tid": -1e300} for event in EVENTS]).encode()
    yield "trace/nested", b'[{"args": {"a": ' + b"[" * 5000
    for name, config in (("gpt", GPT), ("llama", LLAMA), ("vit", VIT)):
        yield "config/" + name, json.dumps(config).encode()
    yield "config/llama_rotations", json.dumps({**LLAMA, "rope_parameters": {"rope_type": "default", "rope_theta": 5e5},
                                                "head_dim": 4, "hidden_act": "silu", "attention_bias": False}).encode()
    yield "config/huge_layers", json.dumps({**GPT, "n_layer": 10**9}).encode()
    yield "config/huge_positions", json.dumps({**LLAMA, "max_position_embeddings": 2**31}).encode()
    yield "config/nested", b'{"model_type": ' + b"[" * 100_000
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    for name, settings in (("gpt2", {"version": "1.0", "normalizer": None, "pre_tokenizer": byte_level, "model": {"type": "BPE"}}),
                           ("sequence", {"normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                               {"type": "Split", "pattern": {"Regex": "\\n"}}, {**byte_level, "use_regex": False}]}}),
                           ("begin", {"add_bos_token": False, "bos_token": "<s>"}), ("begin_is_a_text", {"add_bos_token": "no\n"})):
        yield "tokenizer_settings/" + name, json.dumps(settings).encode()
    yield "tokenizer_settings/nested", b'{"normalizer": ' + b"[" * 5000
    pieces = [(0, 0, 0, 7), (0, 1, 7, 12), (1, 0, 0, 1)]
    yield "checkpoint/flat", index(contents(), 4, pieces)
    yield "checkpoint/boxes", index(contents(), 5, [(0, 0, 0, 6, 0), (0, 1, 0, 6, 4), (1, 0, 0, 1, -1)], (0, 0, 2, 3, 2, 0, 2, 3))
    yield "checkpoint/huge_chunks", index(contents(chunk_bytes=2**63 - 8), 4, pieces)
    yield "checkpoint/step_below_zero", index(contents(step=-5), 4, pieces)
    hdf5 = bytes(64)
    for name, table in (("sound", {}), ("beyond_the_file", {"arrays": {"/x": [60, 5]}}),
                        ("beyond_64_bits", {"arrays": {"/x": [2**63 - 1, 2**63 - 1, 2**64 - 1]}}),
                        ("below_zero", {"arrays": {"/x": [-1, 4]}}), ("another_type", {"arrays": [0, 1]}),
                        ("nested", {"integers": json.loads("[" * 500 + "]" * 500)})):
        text = json.dumps({"format": "f", "integers": {"step": 5}, "arrays": {"/x": [8, 16, 7], "/y": [0, 0]},
                           "structure_crc32": 3, **table}).encode()
        yield "address_table/" + name, text + b"\0" + hdf5
    yield "address_table/with_footer", hdf5 + text + struct.pack("<IQ", zlib.crc32(text), len(text)) + b"plaitad1"
    yield "address_table/larger_than_the_file", struct.pack("<IQ", 0, 2**64 - 1) + b"plaitad1"


def main(folder):
    for name, data in inputs():
        os.makedirs(os.path.dirname(f"{folder}/{name}"), exist_ok=True)
        with open(f"{folder}/{name}", "wb") as file:
            file.write(data)
    os.makedirs(folder + "/hdf5", exist_ok=True)
    hdf5_files(folder + "/hdf5")
    prepared_files(folder + "/hdf5")


if __name__ == "__main__":
    main(sys.argv[1])
