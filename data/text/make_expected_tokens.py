#!/usr/bin/env python3
"""Prints what the tests of this folder expect, computed by other programs. Needs no network.

    python3 -m venv v && v/bin/pip install regex tiktoken tokenizers
    v/bin/python data/text/make_expected_tokens.py FOLDER [TEXT]

FOLDER holds GPT-2's encoder.json and vocab.bpe, or the vocab.json and merges.txt that byte_pair_tokenizer_test learns and
writes (TEST_TMPDIR=DIR bazel-bin/data/text/byte_pair_tokenizer_test: DIR/learned_pairs). TEXT is tiny Shakespeare. Pieces
come from the package regex, ids from tiktoken and from tokenizers, which must agree.
"""

import json
import os
import sys
import zlib

import regex
import tiktoken
import tokenizers

PATTERN = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
SAMPLES = [
    "Hello world", "Hello, world! It's 2 o'clock; they'll've DON'T 'S's", "  two  blanks  \n\n\tand tabs \r\n end   ",
    "naïve café Ωμέγα 漢字かな 한국어 עברית العربية ١٢٣ Ⅷ ½ x²", "🙂👩‍👩‍👧‍👦 a\u00a0b\u2003c\u3000d\u0085e\u1680f\u200bg",
    "for (int i = 0; i < n; ++i) { x[i] += 0x1F; }  // 100%", "e\u0301 ǅ ʰ ª º _a_b_ 1st 2nd٣rd", "<|endoftext|>", "''''ss 's 't'd're",
]
ALPHABET = ["a", "B", "s", "t", "re", "ll", "é", "Ж", "中", "ʰ", "1", "7", "٣", "½", "Ⅷ", " ", " ", " ", "  ", "\n", "\t",
            "\r\n", "\u00a0", "\u2003", "\u3000", "\u0085", "'", "'", "'s", "'ve", "-", "...", "_", "🙂", "\u0301", "\u200b",
            "\ufffd", "\x00", "\x1c", "the", "ing", "\U00010400", "\U000f0000"]
PICKS = 20000


def random_numbers(state):
    """SplitMix64, as base/seed.h."""
    mask = (1 << 64) - 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
        yield z ^ z >> 31


def mixed_text():
    numbers = random_numbers(7)
    return "".join(ALPHABET[next(numbers) % len(ALPHABET)] for _ in range(PICKS))


def every_character():
    """Each character between a letter, itself and a digit: every class shows in the pieces."""
    return "".join("a%s%s1 " % (chr(c), chr(c)) for c in range(0x32000) if not 0xD800 <= c <= 0xDFFF)


def crc(numbers):
    return zlib.crc32(b"".join(number.to_bytes(4, "little") for number in numbers))


def byte_characters():
    kept = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE]
    others = [b for b in range(256) if b not in kept]
    return {**{chr(b): b for b in kept}, **{chr(0x100 + i): b for i, b in enumerate(others)}}


def encoders(folder):
    names = ("encoder.json", "vocab.bpe") if os.path.exists(folder + "/encoder.json") else ("vocab.json", "merges.txt")
    paths = [os.path.join(folder, name) for name in names]
    with open(paths[0], encoding="utf-8") as file:
        vocabulary = json.load(file)
    byte_of = byte_characters()
    ranks = {bytes(byte_of[c] for c in token): i for token, i in vocabulary.items() if token != "<|endoftext|>"}
    tik = tiktoken.Encoding("local", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
    hugging = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(*paths))
    hugging.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tik.encode_ordinary, lambda text: hugging.encode(text).ids


def agreed(programs, name, text):
    first, second = [encode(text) for encode in programs]
    if first != second:
        print("%s: tiktoken and tokenizers differ" % name, file=sys.stderr)
    return first


def main():
    programs = encoders(sys.argv[1])
    for text in SAMPLES:
        print(json.dumps(text), regex.findall(PATTERN, text), agreed(programs, text, text))
    for name, text in [("mixed", mixed_text()), ("every character", every_character())]:
        pieces = [len(piece.encode()) for piece in regex.findall(PATTERN, text)]
        ids = agreed(programs, name, text)
        print("%s: %d pieces, crc32 0x%08x; %d ids, crc32 0x%08x" % (name, len(pieces), crc(pieces), len(ids), crc(ids)))
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for name, part in [("train", text[:len(text) * 9 // 10]), ("validation", text[len(text) * 9 // 10:])]:
            ids = agreed(programs, name, part)
            print("%s %s: %d ids, crc32 0x%08x" % (path, name, len(ids), crc(ids)))


if __name__ == "__main__":
    main()
