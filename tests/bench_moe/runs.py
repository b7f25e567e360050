"""Runs bench_moe for the tests: its configurations as dictionaries, each line parsed to its last character."""
import re

import program_runs

PROGRAM, = program_runs.programs(1)
NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]\d+)?)"

# Parsers that published logs of this benchmark need, as they were written for these.
BENCHMARK = (r"\[Benchmark\] world_size = (\d+), dtype = (\w+), model_dim = (\d+), hidden_size = (\d+), samples = (\d+), "
             r"num_local_experts = (\d+), topK = (\d+), a2a_ffn_overlap_degree = (\d+), device = `cpu`")
STEP = (r"STEP-(\d+): step_time = (\d+\.\d{6}) ms, foward_time = (\d+\.\d{6}), backward_time = (\d+\.\d{6}), "
        r"perf = (\d+\.\d\d) tflops\.")
SUMMARY = r"\[Summary\] Average synchronized step_time = (\d+\.\d{6}) ms, forward = (\d+\.\d{6}), backward = (\d+\.\d{6})"
PROCESS = r"cpu:(\d+) process time:(\d+\.\d+), a: (\d+\.\d+), b: (\d+\.\d+), c: (\d+\.\d+), d: (\d+\.\d+)"

LINES = {
    "benchmark": BENCHMARK, "step": STEP, "summary": SUMMARY, "process": PROCESS,
    "start": r"start()",
    "blocks": r"block_info (\d+) (\d+)",
    "wait": r"(\d+) wait time: (\d+\.\d{3})",
    "bare": r"(\d+)",
    "forward": r"forward:  (\d+\.\d{3})",
    "phases": r"(\d+) (forward|backward) phases: replicas: (\d+\.\d{3}), dispatch: (\d+\.\d{3}), "
              r"permutation: (\d+\.\d{3}), experts: (\d+\.\d{3}), combine: (\d+\.\d{3})",
    "device": r"(cpu)",
    "rank": r"rank: (\d+), nranks: (\d+)",
    "tree": r"( *\(\w+\): .*|MoeBenchmark\(| *\))",
    "exact": r"exact: (\d+) experts on (\d+) ranks, (\d+) placements and chunkings with (\d+) replicas: the same bits as one process",
    "calibration": r"\[Calibration\](?: link = " + NUMBER + r" GB/s per rank \((measured|given)\), latency = " + NUMBER +
                   r" us \((measured|given)\),)? experts = " + NUMBER + r" GFLOP/s per rank \((measured|given)\)",
    "tokens": r"\[Tokens\] per step: rows routed = (\d+), (?:computed|arrived) = (\d+), lost = (\d+)",
    "load": rf"\[Load\] overload_factor = {NUMBER} \(worst step {NUMBER}\), max_vio = {NUMBER}, dead_experts = {NUMBER}, "
            rf"replicas = {NUMBER} of (\d+) slots",
    "stale": rf"\[Load\] with the replicas of the step before: overload_factor = {NUMBER} \(worst step {NUMBER}\)",
    "without": rf"\[Load\] without replicas: overload_factor = {NUMBER}"
               rf"(?:; predicted gain: experts = {NUMBER}, forward \+ backward = {NUMBER})?",
    "rows": rf"\[Rows\] per step: remote once per expert = {NUMBER}, once per destination rank as sent = {NUMBER}",
    "bytes": rf"\[Bytes\] per step: dispatch and combine = {NUMBER} MB, census and places = {NUMBER} MB, "
             rf"replicas = {NUMBER} MB; (?:measured/formula = {NUMBER}|nothing is sent)",
    "time": rf"\[Time\] slowest rank of (\d+) steps: median = {NUMBER} ms, p90 = {NUMBER} ms, perf = {NUMBER} tflops; "
            rf"attention \(not in the step\) = {NUMBER} ms",
    "overhead": rf"\[Overhead\] gate = {NUMBER} ms, census = {NUMBER} ms, planner = {NUMBER} ms, places = {NUMBER} ms, "
                rf"permutation = {NUMBER} ms; planner, places and permutation = {NUMBER} % of the step",
    "cost": rf"\[Cost model\] predicted = {NUMBER} ms \(compute {NUMBER}, exchange {NUMBER}, replicas {NUMBER}\), "
            rf"forward \+ backward measured = {NUMBER} ms, predicted/measured = {NUMBER}",
    "exchange": rf"\[Cost model\] predicted exchange = {NUMBER} ms, measured = {NUMBER} ms, predicted/measured = {NUMBER}",
    "critical": rf"\[Critical path\] processor time of experts(?: \(of each rank's first thread\))?, busiest rank forward and backward = {NUMBER} ms, mean rank = {NUMBER} ms; "
                rf"predicted = {NUMBER} ms, predicted/measured = {NUMBER}",
    "memory": rf"\[Memory\] weights and gradients of a rank: home experts = {NUMBER} MB, replicas at most = {NUMBER} MB",
    "end": r" (end end end)",
    "blank": r"()",
}


class Configuration(dict):
    """Lines by kind, each a tuple of its texts."""
    def one(self, kind):
        line, = self[kind]
        return line

    def numbers(self, kind):
        return [float(text) for text in self.one(kind) if text is not None and re.fullmatch(NUMBER, text)]


class Run(program_runs.Run):
    def configurations(self):
        """In order; every line has to be of a kind."""
        found, after_end = [], True
        for line in self.lines:
            kinds = [(kind, match.groups()) for kind, match in
                     ((kind, re.fullmatch(pattern, line)) for kind, pattern in LINES.items()) if match]
            if not kinds:
                raise AssertionError("a line that no parser knows: " + repr(line))
            kind, texts = kinds[0]
            if kind == "device" and after_end:
                found.append(Configuration({kind: [] for kind in LINES}))
                after_end = False
            after_end = after_end or kind == "end"
            found[-1][kind].append(texts)
        return found


class BenchTest(program_runs.ProgramTest):
    run_class = Run

    def run_program(self, *flags, code=0):
        return self.finish(self.start([PROGRAM, *flags]), code)


def main():
    program_runs.main(1)
