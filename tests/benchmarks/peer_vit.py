#!/usr/bin/env python3
"""A vision transformer's forward and backward passes in PyTorch, one line per pass: the peer of vit_step.

    peer_vit.py --preset=vit-small --steps=10              eager
    peer_vit.py --compile --dtype=bfloat16                 torch.compile, parameters and activations in bfloat16

One thread. With --init, the file of vit_step's --write-initial, losses are the same:

    peer_vit step=3 loss=7.0312 dt=1.312 cpu=1.311
"""
import argparse
import time

import torch
from torch import nn
from torch.nn import functional

# Layers, heads, width; image, patch, classes; class token and biases of queries, keys and values.
PRESETS = {"vit-tiny": (12, 3, 192, 224, 16, 1000, True), "vit-small": (12, 6, 384, 224, 16, 1000, True),
           "vit-base": (12, 12, 768, 224, 16, 1000, True), "vit-large": (24, 16, 1024, 224, 16, 1000, True),
           "vit-large-mean": (24, 16, 1024, 224, 16, 1000, False), "cpu": (4, 4, 128, 32, 4, 10, False)}


class Attention(nn.Module):
    def __init__(self, width, heads, bias):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width, bias=bias), nn.Linear(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        return self.proj(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, tokens, width))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.fc2(functional.gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, width, heads, bias):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width, eps=1e-6), Attention(width, heads, bias)
        self.norm2, self.mlp = nn.LayerNorm(width, eps=1e-6), Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PatchEmbed(nn.Module):
    def __init__(self, width, patch):
        super().__init__()
        self.proj = nn.Conv2d(3, width, patch, patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class Vit(nn.Module):
    def __init__(self, layers, heads, width, image, patch, classes, class_token):
        super().__init__()
        self.class_token = class_token
        if class_token:
            self.cls_token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.pos_embed = nn.Parameter(torch.randn(1, (image // patch) ** 2 + class_token, width) * 0.02)
        self.patch_embed = PatchEmbed(width, patch)
        self.blocks = nn.Sequential(*(Block(width, heads, class_token) for _ in range(layers)))
        self.add_module("norm" if class_token else "fc_norm", nn.LayerNorm(width, eps=1e-6))
        self.head = nn.Linear(width, classes)

    def forward(self, images, labels):
        x = self.patch_embed(images)
        if self.class_token:
            x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1)
        x = self.blocks(x + self.pos_embed)
        x = self.norm(x[:, 0]) if self.class_token else self.fc_norm(x.mean(1))
        return functional.cross_entropy(self.head(x).float() if x.dtype == torch.bfloat16 else self.head(x), labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=PRESETS, default="vit-small")
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float64"], default="float32")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--init", default="", help="safetensors file with initial values")
    args = parser.parse_args()
    torch.set_num_threads(1)
    sizes = PRESETS[args.preset]
    model = Vit(*sizes)
    if args.init:
        from safetensors.torch import load_file
        model.load_state_dict(load_file(args.init))
    model = model.to(getattr(torch, args.dtype))
    image, classes = sizes[3], sizes[5]
    n = torch.arange(args.batch_size * 3 * image * image, dtype=torch.float64) % 100003
    images = torch.sin(n * n * 0.37).view(-1, 3, image, image).to(getattr(torch, args.dtype))
    labels = torch.arange(args.batch_size) * 7 % classes
    called = torch.compile(model) if args.compile else model
    for step in range(args.steps):
        model.zero_grad(set_to_none=True)
        begin, cpu_begin = time.perf_counter(), time.process_time()
        loss = called(images, labels)
        loss.backward()
        print(f"peer_vit step={step} loss={loss.item()!r} dt={time.perf_counter() - begin:.6f} "
              f"cpu={time.process_time() - cpu_begin:.6f}", flush=True)


main()
