#!/usr/bin/env python3
"""TorchBraid's steps of the network of its MNIST example: the peer of odenet_step, through its public classes.

    odenet_step --steps=0 --write-initial=FILE
    mpirun -n 2 PYTHON_WITH_TORCHBRAID peer_odenet.py --init=FILE --steps=20

Flags and lines are those of odenet_step; --serial is PyTorch alone, without TorchBraid:

    peer_odenet step=3 loss=2.3018 dt=0.0412 cpu=0.0411
    odenet_work ranks=2 forward=106 backward=40 bias=0.017
"""
import argparse
import time

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in {"layers": 32, "channels": 3, "batch-size": 50, "levels": 3, "cfactor": 4, "fwd-iters": 2,
                        "bwd-iters": 1, "steps": 20}.items():
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    parser.add_argument("--serial", action="store_true")
    parser.add_argument("--init", required=True, help="safetensors file with initial values")
    return parser.parse_args()


class Layer(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))

    def forward(self, x):
        return functional.relu(self.conv2(functional.relu(self.conv1(x))))


class Opening(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.channels = channels

    def forward(self, x):
        return x.repeat(1, self.channels, 1, 1)


class Closing(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.hidden, self.out = nn.Linear(channels * 784, 32), nn.Linear(32, 10)

    def forward(self, x):
        return self.out(functional.relu(self.hidden(x.flatten(1))))


class Serial(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.rank, self.ranks, self.first = 0, 1, 0
        self.open, self.close = Opening(args.channels), Closing(args.channels)
        self.layers = nn.ModuleList(Layer(args.channels) for _ in range(args.layers))

    def loss(self, images, labels):
        x = self.open(images)
        for layer in self.layers:
            x = x + layer(x) / len(self.layers)
        return functional.cross_entropy(self.close(x), labels)

    def barrier(self):
        pass

    def slowest(self, seconds):
        return seconds


class Braid(nn.Module):
    """The opening and closing layers are on rank 0 alone."""

    def __init__(self, args):
        super().__init__()
        import torchbraid
        from mpi4py import MPI
        self.mpi, self.world = MPI, MPI.COMM_WORLD
        self.rank, self.ranks = self.world.Get_rank(), self.world.Get_size()
        if args.layers % self.ranks != 0:
            raise SystemExit(f"--layers={args.layers}: TorchBraid wants a multiple of {self.ranks} ranks")
        self.solver = torchbraid.LayerParallel(self.world, lambda: Layer(args.channels), args.layers, 1.0,
                                               max_fwd_levels=args.levels, max_bwd_levels=args.levels, max_iters=2)
        self.first = self.solver.fwd_app.start_layer
        self.solver.setPrintLevel(0, True)
        self.solver.setPrintLevel(0, False)
        self.solver.setCFactor(args.cfactor)
        self.solver.setSkipDowncycle(True)
        self.solver.setNumRelax(1)
        self.solver.setNumRelax(0, level=0)
        self.iterate(args.fwd_iters, args.bwd_iters)
        self.compose = self.solver.comp_op()
        self.open, self.close = self.compose(Opening, args.channels), self.compose(Closing, args.channels)
        self.layers = [wrapped.layer for wrapped in self.solver.layer_models]

    def iterate(self, forward, backward):
        self.solver.setFwdMaxIters(forward)
        self.solver.setBwdMaxIters(backward)

    def loss(self, images, labels):
        logits = self.compose(self.close, self.solver(self.compose(self.open, images)))
        return self.compose(functional.cross_entropy, logits, labels)

    def barrier(self):
        self.world.Barrier()

    def slowest(self, seconds):
        return self.world.allreduce(seconds, op=self.mpi.MAX)

    def count(self, app):
        """From now on calls of the app's steps are counted."""
        calls, step = [0], app.eval

        def counted(*args):
            calls[0] += 1
            return step(*args)

        app.eval = counted
        return calls

    def gradients(self, images, labels):
        self.zero_grad(set_to_none=True)
        self.loss(images, labels).backward()
        return [p.grad.double() for p in self.parameters()]

    def work(self, images, labels, exact_iterations):
        forward, backward = self.count(self.solver.fwd_app), self.count(self.solver.bwd_app)
        found = self.gradients(images, labels)
        counts = [self.world.allreduce(calls[0]) for calls in (forward, backward)]
        self.iterate(exact_iterations, exact_iterations)
        exact = self.gradients(images, labels)
        squares = self.world.allreduce(sum((a - b).square().sum().item() for a, b in zip(found, exact)))
        bias = (squares / self.world.allreduce(sum(b.square().sum().item() for b in exact)))**0.5
        if self.rank == 0:
            print(f"odenet_work ranks={self.ranks} forward={counts[0]} backward={counts[1]} bias={bias:.6f}")


def load(model, path):
    values = load_file(path)
    for number, layer in enumerate(model.layers, model.first):
        layer.load_state_dict({name: values[f"layers.{number}.{name}"] for name in layer.state_dict()})
    if model.close is not None:
        for part, name in ((model.close.hidden, "closing_hidden"), (model.close.out, "closing")):
            part.load_state_dict({kind: values[f"{name}.{kind}"] for kind in ("weight", "bias")})


def main():
    args = arguments()
    torch.set_num_threads(1)
    model = (Serial if args.serial else Braid)(args)
    load(model, args.init)
    n = torch.arange(args.batch_size * 784, dtype=torch.float64) % 100003
    images = (0.5 + 0.5 * torch.sin(n * n * 0.37)).view(-1, 1, 28, 28).float()
    labels = torch.arange(args.batch_size) * 7 % 10
    for step in range(args.steps):
        model.barrier()
        begin, cpu_begin = time.perf_counter(), time.process_time()
        model.zero_grad(set_to_none=True)
        loss = model.loss(images, labels)
        loss.backward()
        cpu = time.process_time() - cpu_begin
        seconds = model.slowest(time.perf_counter() - begin)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(parameter.grad, alpha=args.learning_rate)
        if model.rank == 0:
            print(f"peer_odenet step={step} loss={loss.item():.9g} dt={seconds:.6f} cpu={cpu:.6f}", flush=True)
    if not args.serial:
        model.work(images, labels, args.layers // args.cfactor + 1)


main()
