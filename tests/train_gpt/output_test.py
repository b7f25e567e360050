"""What a user sees and finds."""
import json
import os
import re

import runs

KEYS = ("DEVICE DEVICE_ID DISTRIBUTED_BACKEND GPUS_PER_NODE HOSTS HOSTFILE HOSTNAME LOCAL_RANK MACHINE NUM_NODES NGPUS "
        "NGPUS_AVAILABLE NODE_ID RANK SCHEDULER WORLD_SIZE_TOTAL WORLD_SIZE_IN_USE LAUNCH_CMD").split()
STEP = ["step", "loss", "dt", "dtf", "dtb", "sps", "sps_per_rank", "tps", "tps_per_rank"]


class OutputTest(runs.TrainTest):
    def block(self, run, title):
        entries = []
        for line in run.out.split(f"[{title}]:\n", 1)[1].splitlines():
            if not line.startswith("  • "):
                break
            entries.append(line[4:].split("=", 1))
        return entries

    def test_blocks_and_lines(self):
        run = self.train("--nproc=2", "--strategy=fsdp", "--checkpoint-dir=kept")
        self.assertEqual([key for key, _ in self.block(run, "dist_info")], KEYS)
        config = dict(self.block(run, "CONFIG"))
        self.assertEqual((config["strategy"], config["n_embd"], config["batch_size"]), ("fsdp", "32", "7 on 2 ranks"))
        text = runs.text_of_words()
        train = len(text) * 9 // 10
        # Per layer 12 C^2 of matrices and two norms, the last norm, the token embedding; positions for the optimizer.
        vocabulary = len(set(text))
        quoted = vocabulary * 32 + 2 * (12 * 32 * 32 + 2 * 32) + 32
        for line in (f"length of dataset in characters: {len(text):,}", f"vocab size: {vocabulary}",
                     f"train has {train:,} tokens", f"val has {len(text) - train:,} tokens",
                     "Tokens per iteration: 224", "Initializing a new model from scratch",
                     f"number of parameters: {quoted / 1e6:.2f}M", f"Model size: num_params={quoted}",
                     f"num decayed parameter tensors: 10, with {quoted - 5 * 32 + 16 * 32:,} parameters",
                     "num non-decayed parameter tensors: 5, with 160 parameters", "using fused AdamW: True",
                     "Using device='cpu' with backend='FSDP' + 'mpi'", "> initializing dp_shard with size 2",
                     "Memory plan of a rank: ", "Total params: ", "Training Legend", "Startup time: ",
                     "['prompt']: '", "['response']:\n\n", "Saving checkpoint to: " + self.path("kept"),
                     "Saved model to: " + self.path("kept/step-000000008"), "history saved in "):
            self.assertIn(line, run.out)
        for rank in (0, 1):
            self.assertRegex(run.out, rf"\['[^']+'\]\[{rank}/1\] ?(\[pp:0/0\])?\[dp_replicate:0/0\]\[dp_shard:{rank}/1\]")
        self.assertEqual(run.errors(), [])
        self.assertNotIn("\x1b", run.out)  # no terminal

    def test_steps(self):
        run = self.train("--nproc=2", "--strategy=zero1", "--peak-flops=1e12")
        steps = run.steps()
        self.assertEqual([step["step"] for step in steps], list(range(1, 9)))
        for step in steps:
            estimated = ["train_loss", "val_loss"] if step["step"] in (4, 8) else []
            self.assertEqual(list(step), STEP + ["mfu"] + estimated)
            # Printed with six digits behind the point; the slowest rank counts in sps.
            self.assertAlmostEqual(step["dtf"] + step["dtb"], step["dt"], delta=3e-6)
            self.assertLessEqual(step["sps"] * step["dt"], 14 * (1 + 1e-6 / step["dt"]))
            self.assertAlmostEqual(step["sps_per_rank"] * 2 / step["sps"], 1, delta=1e-6)
            self.assertAlmostEqual(step["tps"] / step["sps"] / 16, 1, delta=1e-6)
        self.assertIn("estimates after step 0: ", run.out)
        self.assertRegex(run.out, r"estimates after step 8: .* batches in \d+\.\d{6} s, sample in \d+\.\d{6} s \(in no step's dt\)")
        # It is measured by default; without a peak nothing is said of it.
        run = self.train("--nproc=1", "--max-iters=2", small=[flag for flag in runs.SMALL if "peak" not in flag], outputs="measured")
        self.assertIn("measured peak of rank 0: ", run.out)
        self.assertTrue(all(0 < step["mfu"] < 100 for step in run.steps()))
        run = self.train("--nproc=1", "--max-iters=2", outputs="other")
        self.assertNotIn("mfu", run.out)

    def test_it_learns(self):
        run = self.train("--nproc=1", "--max-iters=60", "--warmup-iters=5", "--lr-decay-iters=60",
                         "--learning-rate=1e-2", "--eval-interval=60", "--sample-tokens=0")
        # Uniform guesses would cost the logarithm of the vocabulary's size; the words are few.
        self.assertGreater(run.steps()[0]["loss"], 2.7)
        self.assertLess(run.steps()[-1]["val_loss"], 2.3)

    def test_files(self):
        run = self.train("--nproc=2", "--strategy=fsdp", "--plots", "--trace", "--csv=x", code=2)
        self.assertIn("unknown flag --csv", run.err)
        run = self.train("--nproc=2", "--strategy=fsdp", "--plots", "--trace")
        for kind, ending in (("tplots", "txt"), ("svgs", "svg"), ("pngs", "png")):
            for metric in ("loss", "dt", "dtf", "dtb", "sps", "tps"):
                self.assertGreater(os.path.getsize(self.path(f"out/{kind}/{metric}.{ending}")), 100)
        history = self.history()
        steps = run.steps()
        self.assertEqual([float.fromhex(x) for x in history["step"]], [step["step"] for step in steps])
        for x, step in zip(history["loss"], steps):
            self.assertAlmostEqual(float.fromhex(x), step["loss"], delta=5.1e-7)
        self.assertEqual([x == "nan" for x in history["val_loss"]], [k not in (4, 8) for k in range(1, 9)])
        # Before the first step there are the printed estimates, and nothing of a step.
        first = {name: values[0] for name, values in self.draws().items() if name != "rank"}
        train, validation = re.search(r"estimates after step 0: train_loss=(\S+) val_loss=(\S+),", run.out).groups()
        self.assertEqual([f"{float.fromhex(first[name]):.6f}" for name in ("step", "tokens", "train_loss", "val_loss")],
                         ["0.000000", "0.000000", train, validation])
        self.assertEqual({float.fromhex(value) for value in history["tokens"]}, {14 * 16})
        self.assertEqual({first[name] for name in ("loss", "dt", "dt_max", "sps", "lr", "gradient_norm", "comm_bytes_dp_shard")}, {"nan"})

    def test_estimates_before_the_first_step_are_drawn(self):
        self.train("--nproc=1", "--plots", "--max-iters=4")
        with open(self.path("out/svgs/loss.svg"), encoding="utf-8") as file:
            drawing = file.read()
        curves = {}  # behind a curve's name are its sample in the legend and its points
        for name in ("loss", "train_loss", "val_loss"):
            path = re.search(rf"<text>{name}</text>.*?<path [^>]*d='M[^M]*M([^']*)'", drawing, re.S)[1]
            curves[name] = [tuple(map(float, point)) for point in re.findall(r"([\d.]+),([\d.]+)", path)]
        self.assertEqual([len(curve) for curve in curves.values()], [4, 2, 2])
        draws = self.draws()
        values = {name: [float.fromhex(value) for value in draws[name]] for name in curves}
        left, right = curves["loss"][0][0], curves["loss"][-1][0]  # steps 1 and 4
        (least, low), *_, (most, high) = sorted(zip(values["loss"][1:], (y for _, y in curves["loss"])))
        for name in ("train_loss", "val_loss"):
            for step, (x, y) in zip((0, 4), curves[name]):
                self.assertAlmostEqual(x, left + (right - left) * (step - 1) / 3, delta=0.1)
                self.assertAlmostEqual(y, low + (high - low) * (values[name][step] - least) / (most - least), delta=0.5)

    def test_learning_rate_that_stays_and_then_decays(self):
        highest, least = 1e-2, 1e-3
        self.train("--nproc=1", "--lr-schedule=wsd", "--learning-rate=1e-2", "--min-lr=1e-3", "--warmup-iters=2",
                   "--lr-decay-iters=10", "--lr-decay-fraction=0.4", "--max-iters=12", "--eval-interval=0")
        expected = [highest / 3, highest * 2 / 3] + [highest] * 4
        expected += [highest - (highest - least) * (step / 4) ** 0.5 for step in range(4)] + [least] * 2
        rates = [float.fromhex(rate) for rate in self.history()["lr"]]
        self.assertEqual(len(rates), len(expected))
        for rate, value in zip(rates, expected):
            self.assertAlmostEqual(rate / value, 1, delta=1e-12)

    def test_a_trace_without_some_calls_says_so(self):
        """A step makes more collectives than the flight recorder keeps."""
        run = self.train("--nproc=2", "--strategy=fsdp", "--trace", "--eval-interval=0", "--max-iters=2", "--n-layer=200",
                         "--n-embd=8", "--gradient-accumulation-steps=1", "--global-batch-size=2")
        with open(self.path("out/trace.json")) as file:
            missing = {name: int(count) for name, count in json.load(file)["otherData"].items() if "dropped" in name}
        self.assertEqual(list(missing), ["events_dropped_rank_0", "events_dropped_rank_1"])
        self.assertIn(f"the trace is missing {sum(missing.values())} events of all ranks", run.out + run.err)

    def test_trace(self):
        """Of each step the passes, and each collective with the part of the model that it is of; curves."""
        micro_batches, blocks, steps = 2, 2, 40
        run = self.train("--nproc=2", "--strategy=fsdp", "--trace", "--eval-interval=0", f"--max-iters={steps}")
        self.assertNotIn("the trace is missing", run.out + run.err)
        with open(self.path("out/trace.json")) as file:
            trace = json.load(file)
        self.assertEqual([name for name in trace["otherData"] if name.startswith("events_dropped")], [])
        for rank in (0, 1):
            events = [event for event in trace["traceEvents"] if event["pid"] == rank]
            spans = {name: [event for event in events if event["ph"] == "X" and event["name"] == name]
                     for name in ("step", "forward", "backward", "optimizer", "all_gather", "reduce_scatter")}
            self.assertEqual([len(spans[name]) for name in ("step", "forward", "backward", "optimizer")],
                             [steps, steps * micro_batches, steps * micro_batches, steps])
            for step in spans["step"]:
                begin, end = step["ts"], step["ts"] + step["dur"]
                for kind in ("all_gather", "reduce_scatter"):
                    units = {span["args"].get("unit") for span in spans[kind] if begin <= span["ts"] < end}
                    self.assertLessEqual({f"transformer.h.{block}" for block in range(blocks)}, units, (rank, step, kind))
            curves = {name: [event["args"]["value"] for event in events if event["ph"] == "C" and event["name"] == name]
                      for name in ("loss", "gradient_norm", "memory, MB")}
            self.assertEqual([len(curve) for curve in curves.values()], [0 if rank else steps, 0 if rank else steps, steps])
            self.assertGreater(min(curves["memory, MB"]), 1)
            for value, step in zip(curves["loss"], run.steps()):
                self.assertAlmostEqual(value, step["loss"], delta=1e-6)

    def test_prepare_only(self):
        run = self.train("--prepare-only", outputs=None)
        text = runs.text_of_words()
        characters = "".join(sorted(set(text)))
        self.assertIn(f"all the unique characters: {characters}\n", run.out)
        self.assertEqual(run.steps(), [])
        self.assertEqual(os.listdir(self.folder), ["input.txt"])

    def test_default_text(self):
        if not os.path.isdir("/usr/share/common-licenses"):
            self.train("--prepare-only", outputs=None, data=None, code=1)
            return
        self.assertRegex(self.train("--prepare-only", outputs=None, data=None).out, r"\d+ license texts of /usr/share")


if __name__ == "__main__":
    runs.main()
