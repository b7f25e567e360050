"""A node that is cut off in mid-run, with checkpoints: its rank is named, and the same command on other nodes ends in the state of a run without
a fault, bit for bit."""
import os
import re
import shutil
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "campaign"))

import ends
import trainers
from cluster import Cluster

LAUNCH, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:3])
STEPS, INTERVAL, CUT = 400, 20, 50  # the cut comes some steps after CUT, by which two checkpoints have begun
FLAGS = [*trainers.GPT, f"--max-iters={STEPS}", f"--checkpoint-interval={INTERVAL}", "--eval-interval=60", "--strategy=fsdp",
         "--resume=auto", "--no-plots", "--timeout=8"]
SECONDS = 240  # longer than a run takes on a busy machine


class ResumeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix="resume", dir="/tmp")
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        trainers.write_data(cls.shared)
        whole = os.path.join(cls.shared, "whole")
        with Cluster(A=1, B=1) as cluster:
            run = cluster.finish(cls.start(cluster, whole), SECONDS)
        if run.code != 0:
            raise RuntimeError(run.out + run.err)
        cls.whole = ends.end_of(whole)

    @classmethod
    def start(cls, cluster, folder):
        """The same command each time; checkpoints and history are in `folder`, which the nodes share."""
        hosts = cluster.write("hosts.txt", "".join(f"{name} slots={count}\n" for name, count in cluster.ranks.items()))
        flags = [flag.replace("--data=", f"--data={cls.shared}/") for flag in FLAGS]
        return cluster.start_here(LAUNCH, "--hostfile=" + hosts, "--nproc=2", "--bind=none", "--starter=mpirun", "--grace=1s", "--",
                                  PROGRAM, *flags, f"--checkpoint-dir={folder}/kept", f"--outputs={folder}/out",
                                  f"--history={folder}/history.h5", XDG_CACHE_HOME=cls.shared)

    def cut_and_resume(self, lost, rank):
        folder = os.path.join(self.shared, "cut-" + lost)
        with Cluster(A=1, B=1) as cluster:
            job = self.start(cluster, folder)
            if not any(f" step={CUT} " in line for line in job.stdout):
                self.fail(cluster.errors())
            cluster.cut(lost)
            run = cluster.finish(job, SECONDS)
            self.assertNotIn(run.code, (0, -9), run.out + run.err)
            self.assertRegex(run.err, rf"rank {rank} \({lost}, pid \d+\) (does not answer|is dead)")
            self.none_left(cluster)
        kept = ends.latest_step(os.path.join(folder, "kept"))
        self.assertIn(kept, range(INTERVAL, STEPS - INTERVAL + 1))
        with Cluster(C=1, D=1) as cluster:
            run = cluster.finish(self.start(cluster, folder), SECONDS)
        self.assertEqual(run.code, 0, run.out + run.err)
        steps = [int(step) for step in re.findall(r" step=(\d+) loss=", run.out)]
        self.assertEqual(steps, list(range(kept + 1, STEPS + 1)))
        self.assertEqual(ends.differences(self.whole, folder), [])

    def none_left(self, cluster):
        """A rank that lived on could write into the folder of the next run."""
        end = time.monotonic() + 30
        while (left := cluster.processes(PROGRAM)) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(left, [])

    def test_cut_link(self):
        self.cut_and_resume("B", 1)

    def test_cut_link_of_rank_0(self):
        self.cut_and_resume("A", 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
