"""Losses of Plait's strategies beside those of PyTorch's, in double precision: the same to rounding.

    losses_test.py gpt|llama STEP_PROGRAM PEER_STEP.py
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

MODEL, PROGRAM, PEER = sys.argv[1], os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3])
STEPS = 12
# Small: seconds on one core. Both clip gradients, by a norm that they exceed.
SIZES = {
    "gpt": ["--n-layer=2", "--n-embd=64", "--block-size=24", "--batch-size=4", "--vocab-size=65", "--clip=0.3"],
    "llama": ["--n-layer=3", "--n-embd=64", "--block-size=24", "--batch-size=4", "--vocab-size=200", "--clip=0.3"],
}[MODEL] + [f"--steps={STEPS}", "--dtype=float64", "--learning-rate=3e-3"]
OURS = [["--strategy=ddp"], ["--strategy=zero1"], ["--strategy=zero2"], ["--strategy=fsdp"],
        ["--strategy=fsdp", "--no-reshard-after-forward"]]
PEERS = ["ddp", "fsdp", "zero1"]
# Losses near 4; doubles are 2.2e-16 apart, relatively. Some 1e5 sums of different order in 12 steps: rounding grows
# like a random walk, sqrt(1e5) * 2.2e-16 = 7e-14.
TOLERANCE = 1e-13 * 4


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class LossesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="parity")
        cls.initial = os.path.join(cls.folder, "initial.safetensors")
        cls.environment = dict(os.environ, OMP_NUM_THREADS="1", TMPDIR="/tmp", GLOO_SOCKET_IFNAME="lo")
        cls.single = cls.ours("--nproc=1", "--write-initial=" + cls.initial)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def losses(cls, text, word):
        found = [float(loss) for loss in re.findall(word + r"_step step=\d+ loss=(\S+)", text)]
        assert len(found) == STEPS, text
        return found

    @classmethod
    def ours(cls, *flags):
        run = subprocess.run([PROGRAM, *SIZES, *flags], env=cls.environment, stdout=subprocess.PIPE, text=True,
                             check=True, timeout=200)
        return cls.losses(run.stdout, MODEL)

    @classmethod
    def peer(cls, strategy, ranks):
        command = [sys.executable, PEER, "--model=" + MODEL, *SIZES, "--init=" + cls.initial, "--strategy=" + strategy,
                   f"--ranks={ranks}", f"--port={free_port()}"]
        processes = [subprocess.Popen([*command, f"--rank={rank}"], env=cls.environment, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True) for rank in range(ranks)]
        texts = [process.communicate(timeout=300) for process in processes]
        assert all(process.returncode == 0 for process in processes), texts
        return cls.losses(texts[0][0], "peer")

    def same(self, mine, other):
        for step, (x, y) in enumerate(zip(mine, other)):
            self.assertLessEqual(abs(x - y), TOLERANCE, f"step {step}: {x!r}, {y!r}")

    def test_one_process(self):
        self.assertNotAlmostEqual(self.single[0], self.single[-1], delta=1e-3)  # it moves
        self.same(self.single, self.peer("single", 1))

    def test_two_ranks(self):
        peers = {strategy: self.peer(strategy, 2) for strategy in PEERS}
        for flags in OURS:
            mine = self.ours("--nproc=2", *flags)
            for strategy, other in peers.items():
                with self.subTest(ours=flags, peer=strategy):
                    self.same(mine, other)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
