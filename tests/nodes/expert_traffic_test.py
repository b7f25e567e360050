"""Bytes that leave a node in a pass of an expert layer, counted by the kernel, against the formula: a row goes once to each
node that has experts of it, however many, and four times: there and back, forward and backward. Results are those of one process.
"""
import os
import sys
import unittest

from cluster import Cluster

PROGRAM = os.path.abspath(sys.argv[1])
EXPERTS, K, WIDTH, TOKENS = 8, 4, 1024, 512  # as expert_traffic.cc
ROW = 4 * WIDTH  # bytes
PLACE, WEIGHT = 12, 4  # of each expert of a row: where it goes; its weight, whose gradient comes back


def experts_of(routing, rank, token):
    number = 7 * token + rank
    first = number % (EXPERTS // K) * K if routing == "blocks" else number % EXPERTS
    return [(first + j) % EXPERTS for j in range(K)]


def sent_bytes(routing, ranks, once_per_expert=False):
    """By node."""
    nodes = [name for name, count in ranks.items() for _ in range(count)]
    size = len(nodes)
    first_expert = [rank * EXPERTS // size for rank in range(size + 1)]
    node_of_expert = [nodes[rank] for rank in range(size) for _ in range(first_expert[rank], first_expert[rank + 1])]
    sent = dict.fromkeys(ranks, 0)
    for rank, here in enumerate(nodes):
        for token in range(TOKENS):
            others = [node_of_expert[e] for e in experts_of(routing, rank, token) if node_of_expert[e] != here]
            for there in others if once_per_expert else set(others):
                sent[here] += 2 * ROW
                sent[there] += 2 * ROW
            for there in others:
                sent[here] += PLACE + WEIGHT
                sent[there] += WEIGHT
    return sent


class ExpertTrafficTest(unittest.TestCase):
    def check(self, routing, **ranks):
        expected = sent_bytes(routing, ranks)
        with Cluster(**ranks) as cluster:
            def run(calls):
                done = cluster.run(PROGRAM, routing, str(TOKENS), str(calls))
                self.assertEqual(done.code, 0, done.out + done.err)
            sent = cluster.expect_sent(self, expected, few=1, many=5, run=run)
        return sent, sent_bytes(routing, ranks, once_per_expert=True)

    def test_all_experts_of_a_row_on_one_node(self):
        sent, per_expert = self.check("blocks", A=2, B=2)
        for name, there in sent.items():
            self.assertAlmostEqual(per_expert[name] / there, K, delta=0.05 * K)

    def test_experts_of_a_row_on_both_nodes(self):
        self.check("spread", A=2, B=2)

    def test_unequal_nodes(self):
        self.check("spread", A=1, B=3)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
