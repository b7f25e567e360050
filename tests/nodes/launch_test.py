"""launch on nodes with unequal numbers of ranks: on each of them as many run as it says."""
import collections
import os
import re
import sys
import unittest

from cluster import Cluster

LAUNCH = os.path.abspath(sys.argv[1])


class LaunchTest(unittest.TestCase):
    def places(self, cluster, hosts, *flags):
        """What launch says of each node's ranks, and how many ran there."""
        file = cluster.write("nodes", hosts)
        flags = ["--hostfile=" + file, "--bind=none", *flags, "--", "hostname"]
        said = cluster.finish(cluster.start_here(LAUNCH, "--dry-run", *flags))
        self.assertEqual(said.code, 0, said.err)
        run = cluster.finish(cluster.start_here(LAUNCH, *flags))
        self.assertEqual(run.code, 0, run.err)
        ran = collections.Counter(line for line in run.out.splitlines() if line in cluster.ranks)
        return {name: int(count) for name, count in re.findall(r"\b([ABC]) \((\d+) ranks?\)", said.out)}, dict(ran)

    def test_unequal_nodes(self):
        with Cluster(A=1, B=3, C=2) as cluster:
            for hosts, flags, expected in (
                    ("A slots=1\nB slots=3\nC slots=2\n", [], {"A": 1, "B": 3, "C": 2}),
                    ("B slots=3\nA slots=1\n", [], {"A": 1, "B": 3}),
                    ("A:1\nB:3\n", ["--nproc=3"], {"A": 1, "B": 2}),
                    ("A slots=1\nB slots=1\n", ["--ppn=2"], {"A": 2, "B": 2})):  # more than the file has slots
                with self.subTest(hosts=hosts, flags=flags):
                    said, ran = self.places(cluster, hosts, *flags)
                    self.assertEqual(ran, expected)
                    self.assertEqual(said, expected)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
