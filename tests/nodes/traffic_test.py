"""Bytes that leave a node, counted by the kernel, against the formulas of bandwidth-optimal collectives.

Ranks are numbered node by node, so of the ring of n ranks one edge leaves each node: per call it carries (n - 1) / n of the
buffer in a reduce-scatter and in an all-gather, and twice that in an all-reduce.
"""
import sys
import unittest

from cluster import Cluster

PROGRAM = sys.argv[1]
MEGABYTES, FEW, MANY = 6, 2, 12
PASSES = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1}


class TrafficTest(unittest.TestCase):
    def sent_per_call(self, operation, cluster):
        """By node. The difference of two runs leaves out what starting and ending costs."""
        sent = []
        for calls in (FEW, MANY):
            before = {name: cluster.sent_bytes(name) for name in cluster.ranks}
            run = cluster.run(PROGRAM, operation, str(MEGABYTES), str(calls))
            self.assertEqual(run.code, 0, run.err)
            sent.append({name: cluster.sent_bytes(name) - before[name] for name in cluster.ranks})
        return {name: (sent[1][name] - sent[0][name]) / (MANY - FEW) for name in cluster.ranks}

    def check(self, **ranks):
        size = sum(ranks.values())
        with Cluster(**ranks) as cluster:
            for operation, passes in PASSES.items():
                expected = passes * (size - 1) / size * MEGABYTES * 1e6
                for name, sent in self.sent_per_call(operation, cluster).items():
                    self.assertAlmostEqual(sent / expected, 1, delta=0.02, msg=f"{operation}, node {name}: {sent} bytes")

    def test_equal_nodes(self):
        self.check(A=2, B=2)

    def test_unequal_nodes(self):
        self.check(A=1, B=3)

    def test_three_nodes(self):
        self.check(A=1, B=1, C=1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
