"""Bytes that leave a node, counted by the kernel, against the formulas of bandwidth-optimal collectives.

Ranks are numbered node by node, so of the ring of n ranks one edge leaves each node: per call it carries (n - 1) / n of the
buffer in a reduce-scatter and in an all-gather, and twice that in an all-reduce.
"""
import os
import sys
import unittest

from cluster import Cluster

PROGRAM = os.path.abspath(sys.argv[1])
MEGABYTES, FEW, MANY = 6, 2, 12
TOLERANCE = 0.02
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

    def ratios(self, operation, cluster, expected):
        """By node, of the first measurement in which all are right, else of the last: on a busy machine the kernel sends
        segments of a run again, which no formula has; what a program sends too much or too little, it does every time."""
        for _ in range(3):
            ratios = {name: sent / expected for name, sent in self.sent_per_call(operation, cluster).items()}
            if all(abs(ratio - 1) <= TOLERANCE for ratio in ratios.values()):
                break
        return ratios

    def check(self, **ranks):
        size = sum(ranks.values())
        with Cluster(**ranks) as cluster:
            for operation, passes in PASSES.items():
                expected = passes * (size - 1) / size * MEGABYTES * 1e6
                ratios = self.ratios(operation, cluster, expected)
                for name, ratio in ratios.items():
                    self.assertAlmostEqual(ratio, 1, delta=TOLERANCE, msg=f"{operation}, node {name}")

    def test_equal_nodes(self):
        self.check(A=2, B=2)

    def test_unequal_nodes(self):
        self.check(A=1, B=3)

    def test_three_nodes(self):
        self.check(A=1, B=1, C=1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
