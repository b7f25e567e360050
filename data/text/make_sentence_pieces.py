#!/usr/bin/env python3
"""Writes what sentence_piece_tokenizer_test expects: a small model in FOLDER and its ids of texts, by the SentencePiece library.

    python3 -m venv v && v/bin/pip install sentencepiece protobuf
    v/bin/python data/text/make_sentence_pieces.py data/text/testing

FOLDER/tokenizer.model has byte pairs, the 256 bytes and texts unchanged, as Llama's. FOLDER/sentence_piece_ids.json has the ids
of each text, of that model and of changed ones (VARIANTS), which the test makes by itself.
"""

import io
import json
import random
import sys

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

ANIMALS = ["cat", "dog", "bird", "horse", "mouse"]
PLACES = ["mat", "tree", "road", "house", "river"]
SENTENCES = ["the %s sat on the %s and looked at a zebra !" % (a, p) for a in ANIMALS for p in PLACES]
SENTENCES += ["aaaa baaaa aaab naïve café for (i = 0; i < 10; ++i)", "  two  blanks   and    more"] * 3
SAMPLES = [
    "", "a", " ", "   ", "the cat sat on the mat", " the cat", "   the   cat  ", "the cat\nsat\t\r\n on", "aaaaaaa baaaaab",
    "zebra é🙂👩‍👩‍👧 !", "e\u0301 naïve café Ж中 漢字 Ωμέγα", "▁the▁▁cat ▁", "the" * 30 + "tree" * 20, "<user>the cat<use<user>r> a<user> b",
    "<s></s><unk><0x0A>", "a\u0000b\u00a0c\u3000d\ufffd\U0010ffff", "for (i = 0; i < 10; ++i) { x[i] += 0x1F; }",
]
ALPHABET = ["the ", "cat", "a", "a", "aa", "aaa", "b", "e", "t", "h", "s", "o", " ", " ", "  ", "\n", "é", "e\u0301", "中", "🙂", "▁",
            "<user>", "<use", "r>", "house", "zebra", "!", "Q", "\u00a0"]


def squeezed(model):
    model.normalizer_spec.remove_extra_whitespaces = True


def without_prefix(model):
    model.normalizer_spec.add_dummy_prefix = False


def without_bytes(model):
    model.trainer_spec.byte_fallback = False
    for piece in model.pieces:
        if piece.type == piece.BYTE:
            piece.type = piece.CONTROL


def equal_scores(model):
    for piece in model.pieces:
        piece.score = 0


def joined(model):
    model.pieces[300].piece = "▁a<user>"
    model.pieces[301].piece = "<use<user>"


def within_words(model):
    for number, piece in enumerate(model.pieces):
        if "▁" in piece.piece.lstrip("▁"):
            piece.piece = "\ue000%d" % number


VARIANTS = {"as it is": lambda model: None, "squeezed": squeezed, "without prefix": without_prefix,
            "without bytes": without_bytes, "equal scores": equal_scores, "joined": joined, "within words": within_words}


def texts():
    numbers = random.Random(7)
    return SAMPLES + ["".join(numbers.choice(ALPHABET) for _ in range(picks)) for picks in [10, 20, 150]]


def train():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES), model_writer=model, model_type="bpe", vocab_size=400,
        byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False, num_threads=1,
        split_by_whitespace=False, allow_whitespace_only_pieces=True, character_coverage=1.0, minloglevel=2,
        user_defined_symbols=["<user>", "<use", "中"])
    return model.getvalue()


def encoded(model, text):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
    return processor.encode(text)


def main():
    trained = train()
    with open(sys.argv[1] + "/tokenizer.model", "wb") as file:
        file.write(trained)
    cases = []
    for name, change in VARIANTS.items():
        model = sentencepiece_model_pb2.ModelProto.FromString(trained)
        change(model)
        assert encoded(model, b"a\xff\xc0\x80b") == encoded(model, "a\ufffd\ufffd\ufffdb")
        cases += [{"model": name, "text": text, "ids": encoded(model, text)} for text in texts()]
    with open(sys.argv[1] + "/sentence_piece_ids.json", "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
