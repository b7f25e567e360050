"""GPT-2 as nanoGPT trains it, in PyTorch: the peer of models/gpt. Names are those of nanoGPT's state dict."""
import math

import torch
from torch import nn
from torch.nn import functional


class LayerNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return functional.layer_norm(x, self.weight.shape, self.weight, None, 1e-5)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width, bias=False)
        self.c_proj = nn.Linear(width, width, bias=False)

    def forward(self, x):
        batch, seq, width = x.shape
        q, k, v = (part.view(batch, seq, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.c_attn(x).split(width, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(batch, seq, width))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width, bias=False)
        self.c_proj = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        return self.c_proj(functional.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.attn = LayerNorm(width), Attention(width, heads)
        self.ln_2, self.mlp = LayerNorm(width), Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        width = sizes.n_embd
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(sizes.vocab_size, width),
            "wpe": nn.Embedding(sizes.block_size, width),
            "h": nn.ModuleList(Block(width, sizes.n_head) for _ in range(sizes.n_layer)),
            "ln_f": LayerNorm(width),
        })
        for name, parameter in self.named_parameters():
            if name.endswith("c_proj.weight"):
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * sizes.n_layer))
            elif parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def blocks(self):
        return list(self.transformer["h"])

    def forward(self, tokens, targets):
        """Mean cross entropy; the head is the token embedding."""
        parts = self.transformer
        x = parts["wte"](tokens) + parts["wpe"](torch.arange(tokens.shape[1], device=tokens.device))
        for block in parts["h"]:
            x = block(x)
        logits = functional.linear(parts["ln_f"](x), parts["wte"].weight)
        return functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))
