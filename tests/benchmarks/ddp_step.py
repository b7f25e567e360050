"""The step of test_dist in PyTorch: DistributedDataParallel over gloo (or one process alone), Adam, seconds per step.

    ddp_step.py RANK WORLD_SIZE PORT STEPS      prints "ddp_step ranks=2 median=... min=... max=..." on rank 0
"""
import os
import statistics
import sys
import time

start = time.perf_counter()
import torch  # noqa: E402 - its import belongs to the start
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

WIDTHS = [128, 1024, 512, 256, 128, 128]
BATCH = 64
LEFT_OUT = 10


def main():
    rank, world, port, steps = (int(text) for text in sys.argv[1:5])
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(1234 + rank)
    model = torch.nn.Sequential(*[torch.nn.Linear(a, b) for a, b in zip(WIDTHS, WIDTHS[1:])])
    if world > 1:
        model = DistributedDataParallel(model)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3)
    seconds, first = [], 0.0
    for step in range(steps + LEFT_OUT):
        dist.barrier()
        begin = time.perf_counter()
        x = torch.rand(BATCH, WIDTHS[0])
        loss = ((model(x) - x) ** 2).sum()
        loss.backward()
        adam.step()
        end = time.perf_counter()
        adam.zero_grad()
        if step == 0:
            first = end - start
        if step >= LEFT_OUT:
            seconds.append(end - begin)
    if rank == 0:
        print(f"ddp_step ranks={world} median={statistics.median(seconds):.6f} min={min(seconds):.6f} "
              f"max={max(seconds):.6f} first_step_after={first:.3f}", flush=True)
    dist.destroy_process_group()


main()
