#!/usr/bin/env python3
"""A model's training steps in PyTorch, one line per step: the peer of gpt_step and llama_step.

    peer_step.py --model=gpt --steps=30                                      one process, eager
    peer_step.py --model=gpt --compile --steps=30                            torch.compile
    peer_step.py --model=llama --strategy=fsdp --rank=0 --ranks=2 --port=P   and the same with --rank=1

Strategies: single; ddp (DistributedDataParallel); zero1 (the same with ZeroRedundancyOptimizer); fsdp (fully_shard on
each block and on the root, all of it dropped after forward); fsdp-keep-root (PyTorch's default: the root stays); tp
(parallelize_module with the usual plan: columns, then rows, of attention and feed-forward, both tables; Llama only); pp
(Schedule1F1B, --first-blocks blocks on rank 0; Llama on two ranks only). All
over gloo, one thread a process, on the processor; single with --device=cuda on a GPU. Rank 0 prints, times of its own, the
loss that of all ranks:

    peer_step step=3 loss=4.1747493743896484 dt=0.046112 cpu=0.046100

cpu: processor seconds of the whole process, all threads. The first steps allocate (and compile).
"""
import argparse
import os
import time

import torch
import torch.distributed as dist
from gpt_model import Gpt
from llama_model import Llama
from step_data import StepData
from torch import nn
from torch.nn import functional


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["gpt", "llama"], default="gpt")
    parser.add_argument("--strategy", choices=["single", "ddp", "zero1", "fsdp", "fsdp-keep-root", "tp", "pp"], default="single")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="cuda: with --strategy=single")
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float64"], default="float32")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch-size", type=int, help="blocks of all ranks")
    for name in ("block-size", "n-layer", "n-head", "n-kv-head", "n-embd", "n-hidden", "vocab-size"):
        parser.add_argument("--" + name, type=int)
    parser.add_argument("--micro-batches", type=int, default=1, help="of a step, for pp")
    parser.add_argument("--first-blocks", type=int, default=18, help="of the first stage")
    parser.add_argument("--data", default="", help="a text; else random tokens")
    parser.add_argument("--init", default="", help="safetensors file with initial values")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--beta2", type=float, default=0.95)
    parser.add_argument("--clip", type=float, help="0: none")
    parser.add_argument("--fused", action="store_true", help="fused AdamW instead of PyTorch's choice for processors")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--port", type=int, default=29511)
    args = parser.parse_args()
    defaults = {
        # nanoGPT's setting for processors, and the 33.6 M Llama-like model.
        "gpt": {"batch_size": 12, "block_size": 64, "n_layer": 4, "n_head": 4, "n_embd": 128, "vocab_size": 65,
                "clip": 1.0},
        "llama": {"batch_size": 4, "block_size": 64, "n_layer": 24, "n_head": 16, "n_kv_head": 4, "n_embd": 256,
                  "n_hidden": 720, "vocab_size": 32000, "clip": 0.0},
    }
    for name, value in defaults[args.model].items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    return args


def model_of(args):
    torch.manual_seed(1337)
    model = (Gpt if args.model == "gpt" else Llama)(args)
    if args.init:
        from safetensors.torch import load_file
        model.load_state_dict(load_file(args.init))
    return model.to(args.device, torch.float64 if args.dtype == "float64" else None)


def groups_of(model, args):
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    return [{"params": decayed, "weight_decay": args.weight_decay}, {"params": others, "weight_decay": 0.0}]


def shard(model, keep_root):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.blocks():
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh, **({} if keep_root else {"reshard_after_forward": True}))


def split(model):
    """PyTorch's tutorial on tensor parallelism, without sequence parallelism."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    parallelize_module(model, mesh, {"tok_embeddings": RowwiseParallel(input_layouts=Replicate()),
                                     "output": ColwiseParallel(output_layouts=Replicate())})
    for block in model.blocks():
        block.attention.heads //= dist.get_world_size()
        block.attention.kv_heads //= dist.get_world_size()
        parallelize_module(block, mesh, {**{f"attention.w{name}": ColwiseParallel() for name in "qkv"},
                                         "attention.wo": RowwiseParallel(), "feed_forward.w1": ColwiseParallel(),
                                         "feed_forward.w3": ColwiseParallel(), "feed_forward.w2": RowwiseParallel()})


class Pipeline:
    """Called as a model is, but has done its backward passes then."""

    def __init__(self, model, args):
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B
        self.args, first = args, args.rank == 0
        self.part = Part(model, range(args.first_blocks) if first else range(args.first_blocks, args.n_layer), first)
        # Told here: to find them out it needs NumPy.
        tokens = torch.zeros(args.batch_size // args.micro_batches, args.block_size, dtype=torch.int64)
        hidden, logits = (torch.empty(*tokens.shape, width) for width in (args.n_embd, args.vocab_size))
        stage = PipelineStage(self.part, args.rank, args.ranks, torch.device("cpu"), input_args=tokens if first else hidden,
                              output_args=hidden if first else logits)
        self.schedule = Schedule1F1B(stage, args.micro_batches, loss_fn=lambda logits, targets: functional.cross_entropy(
            logits.view(-1, logits.shape[-1]), targets.view(-1)))

    def __call__(self, inputs, targets):
        losses = []
        if self.args.rank == 0:
            self.schedule.step(inputs)
        else:
            self.schedule.step(target=targets, losses=losses)
        # The print divides by the ranks.
        return self.args.ranks * torch.stack(losses).mean() if losses else torch.zeros(())


class Part(nn.Module):
    """A stage of two: blocks, with the embedding in front or the head behind."""

    def __init__(self, model, blocks, first):
        super().__init__()
        self.rotations = model.rotations
        self.layers = nn.ModuleList(model.layers[i] for i in blocks)
        self.embedding = model.tok_embeddings if first else None
        self.head = None if first else nn.Sequential(model.norm, model.output)

    def forward(self, x):
        if self.embedding is not None:
            x = self.embedding(x)
        cosines, sines = (part[:x.shape[1]].to(x.dtype) for part in self.rotations)
        for layer in self.layers:
            x = layer(x, cosines, sines)
        return x if self.head is None else self.head(x)


def parallel(args):
    """The model that is called, the model that is stepped, and its optimizer."""
    model = model_of(args)
    called = model
    if args.strategy.startswith("fsdp"):
        shard(model, args.strategy == "fsdp-keep-root")
    elif args.strategy == "tp":
        split(model)
    elif args.strategy == "pp":
        called = Pipeline(model, args)
        model = called.part
    elif args.strategy in ("ddp", "zero1"):
        called = nn.parallel.DistributedDataParallel(model)
    if args.compile:
        called = torch.compile(called)
    options = {"lr": args.learning_rate, "betas": (0.9, args.beta2)}
    if args.fused:
        options["fused"] = True
    if args.strategy == "zero1":
        from torch.distributed.optim import ZeroRedundancyOptimizer
        decayed, others = groups_of(model, args)
        optimizer = ZeroRedundancyOptimizer(decayed["params"], torch.optim.AdamW,
                                            weight_decay=decayed["weight_decay"], **options)
        if others["params"]:
            optimizer.add_param_group(others)
    else:
        # foreach is PyTorch's choice on GPUs, and quicker than its choice on processors, one parameter after the other.
        optimizer = torch.optim.AdamW(groups_of(model, args), **({"foreach": True} | options if not args.fused else options))
    return called, model, optimizer


def seconds_when_done(args):
    if args.device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main():
    args = arguments()
    torch.set_num_threads(1)
    if args.strategy != "single":
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(args.port))
        dist.init_process_group("gloo", rank=args.rank, world_size=args.ranks)
    data = StepData(args.vocab_size, args.block_size, args.batch_size, args.data)
    rank, ranks = (0, 1) if args.strategy in ("tp", "pp") else (args.rank, args.ranks)  # of the data
    batches = [[part.to(args.device) for part in data.batch(step, rank, ranks)] for step in range(args.steps)]
    called, model, optimizer = parallel(args)
    for step, (inputs, targets) in enumerate(batches):
        if args.ranks > 1:
            dist.barrier()
        begin, cpu_begin = seconds_when_done(args), time.process_time()
        with torch.autocast(args.device, torch.bfloat16, enabled=args.dtype == "bfloat16"):
            loss = called(inputs, targets)
        if args.strategy != "pp":
            loss.backward()
        if args.clip > 0:
            nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds, cpu = seconds_when_done(args) - begin, time.process_time() - cpu_begin
        whole = loss.detach().double()
        if args.ranks > 1:
            dist.all_reduce(whole)
        if args.rank == 0:
            print(f"peer_step step={step} loss={whole.item() / args.ranks!r} dt={seconds:.6f} cpu={cpu:.6f}", flush=True)
    if args.strategy != "single":
        dist.barrier()
        # Gloo's threads sometimes end the process with an error when Python takes them down; everything is printed.
        os._exit(0)


if __name__ == "__main__":
    main()
