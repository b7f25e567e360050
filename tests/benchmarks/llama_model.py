"""A decoder as Llama's in PyTorch: the peer of models/llama. Rotary positions turn neighbouring pairs."""
import torch
from torch import nn
from torch.nn import functional


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return functional.rms_norm(x, self.weight.shape, self.weight, 1e-5)


def rotations(head_width, seq, base=10000.0):
    """(seq, head_width / 2) cosines and sines."""
    frequencies = 1.0 / base ** (torch.arange(0, head_width, 2, dtype=torch.float64) / head_width)
    angles = torch.outer(torch.arange(seq, dtype=torch.float64), frequencies)
    return angles.cos(), angles.sin()


def rotate(x, cosines, sines):
    """x: (batch, heads, seq, head width)."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cosines - odd * sines, even * sines + odd * cosines), dim=-1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        width, self.heads, self.kv_heads = sizes.n_embd, sizes.n_head, sizes.n_kv_head
        self.head_width = width // self.heads
        self.wq = nn.Linear(width, width, bias=False)
        self.wk = nn.Linear(width, self.kv_heads * self.head_width, bias=False)
        self.wv = nn.Linear(width, self.kv_heads * self.head_width, bias=False)
        self.wo = nn.Linear(width, width, bias=False)

    def forward(self, x, cosines, sines):
        batch, seq, _ = x.shape

        def heads(y, count):
            return y.view(batch, seq, count, self.head_width).transpose(1, 2)

        q = rotate(heads(self.wq(x), self.heads), cosines, sines)
        k = rotate(heads(self.wk(x), self.kv_heads), cosines, sines)
        v = heads(self.wv(x), self.kv_heads)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.wo(y.transpose(1, 2).reshape(batch, seq, -1))


class FeedForward(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.w1 = nn.Linear(sizes.n_embd, sizes.n_hidden, bias=False)
        self.w2 = nn.Linear(sizes.n_hidden, sizes.n_embd, bias=False)
        self.w3 = nn.Linear(sizes.n_embd, sizes.n_hidden, bias=False)

    def forward(self, x):
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.attention, self.feed_forward = Attention(sizes), FeedForward(sizes)
        self.attention_norm, self.ffn_norm = RmsNorm(sizes.n_embd), RmsNorm(sizes.n_embd)

    def forward(self, x, cosines, sines):
        x = x + self.attention(self.attention_norm(x), cosines, sines)
        return x + self.feed_forward(self.ffn_norm(x))


class Llama(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.tok_embeddings = nn.Embedding(sizes.vocab_size, sizes.n_embd)
        self.layers = nn.ModuleList(Block(sizes) for _ in range(sizes.n_layer))
        self.norm = RmsNorm(sizes.n_embd)
        self.output = nn.Linear(sizes.n_embd, sizes.vocab_size, bias=False)
        self.rotations = rotations(sizes.n_embd // sizes.n_head, sizes.block_size)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def blocks(self):
        return list(self.layers)

    def forward(self, tokens, targets):
        x = self.tok_embeddings(tokens)
        cosines, sines = (part[:tokens.shape[1]].to(x) for part in self.rotations)
        for layer in self.layers:
            x = layer(x, cosines, sines)
        logits = self.output(self.norm(x))
        return functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))
