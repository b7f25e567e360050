"""What a user sees and finds."""
import json
import os
import warnings

import runs

KEYS = ("DEVICE DEVICE_ID DISTRIBUTED_BACKEND GPUS_PER_NODE HOSTS HOSTFILE HOSTNAME LOCAL_RANK MACHINE NUM_NODES NGPUS "
        "NGPUS_AVAILABLE NODE_ID RANK SCHEDULER WORLD_SIZE_TOTAL WORLD_SIZE_IN_USE LAUNCH_CMD").split()
CONFIG = "warmup log_freq batch_size input_size output_size dtype device world_size train_iters".split()
METRICS = ["dt", "dtf", "dtb", "loss", "iter", "sps"]


class OutputTest(runs.DistTest):
    def block(self, run, title):
        text = run.out.split(f"[{title}]:\n", 1)[1]
        entries = []
        for line in text.splitlines():
            if not line.startswith("  • "):
                break
            entries.append(line[4:].split("=", 1))
        return entries

    def test_blocks_and_lines(self):
        run = self.run_program("--nproc=2", "--train-iters=12")
        info = self.block(run, "dist_info")
        self.assertEqual([key for key, _ in info], KEYS)
        info = dict(info)
        self.assertEqual((info["WORLD_SIZE_IN_USE"], info["RANK"], info["NODE_ID"]), ("2", "0", "0"))
        self.assertIn("-n 2", info["LAUNCH_CMD"])
        config = self.block(run, "CONFIG")
        self.assertEqual([key for key, _ in config], CONFIG)
        self.assertEqual(dict(config)["world_size"], "2")
        self.assertIn("    (1): Linear(in_features=1024, out_features=512, bias=True)\n", run.out)
        self.assertIn("837632 parameters", run.out)
        self.assertRegex(run.out, r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\]\[INFO\]\[\w+:\d+\] - \[0/2\] Using device='cpu'")
        for rank in (0, 1):
            self.assertRegex(run.out, rf"\['[^']+'\]\[{rank}/1\] ?\[dp:{rank}/1\]")
        self.assertIn("parameters are bitwise identical on all 2 ranks", run.out)
        self.assertRegex(run.lines[-1], r"- \[0\] runtime=\d+\.\d{6}s$")
        self.assertNotIn(runs.ESCAPE, run.out)  # no terminal
        self.assertEqual(run.errors(), [])

    def test_speeds_are_what_they_are_called(self):
        steps = self.run_program("--nproc=2", "--train-iters=12", "--batch-size=32", "--no-plots").steps()
        self.assertEqual([step["iter"] for step in steps], list(range(1, 12)))
        for step in steps:  # printed with four to six digits
            self.assertAlmostEqual(step["sps"] * step["dt"] / 32, 1, delta=2e-3)
            self.assertAlmostEqual((step["dtf"] + step["dtb"]) / step["dt"], 1, delta=2e-3)
            self.assertLessEqual(step["sps_world"] / (2 * step["sps"]), 1.002)  # the slowest rank counts
        self.assertLess(steps[-1]["loss"], 0.7 * steps[0]["loss"])

    def test_strategies_take_the_same_steps(self):
        losses = {}
        for name, flags in {"ddp": (), "zero1": (), "fsdp": (), "hsdp": ("--mesh=dp_replicate=2,dp_shard=2", "--nproc=4")}.items():
            strategy = "fsdp" if name == "hsdp" else name
            run = self.run_program("--nproc=2", "--train-iters=8", "--no-plots", "--strategy=" + strategy, *flags, outputs=name)
            losses[name] = [step["loss"] for step in run.steps()]
            self.assertIn(f"with backend='{strategy.upper()}' + 'mpi'", run.out)
            ranks = 4 if name == "hsdp" else 2
            self.assertIn(f"parameters are bitwise identical on all {ranks} ranks", run.out)
        self.assertEqual(losses["zero1"], losses["ddp"])
        self.assertEqual(losses["fsdp"], losses["ddp"])
        self.assertLess(losses["hsdp"][-1], 0.7 * losses["hsdp"][0])  # other samples on four ranks
        self.assertRegex(run.out, r"\['[^']+'\]\[3/3\] ?\[dp_replicate:1/1\]\[dp_shard:1/1\]")

    def test_retired_flags_say_so_once(self):
        run = self.run_program("--nproc=2", "--train-iters=4", "--no-plots", "--bucket-bytes=1000")
        self.assertEqual(run.out.count("--bucket-bytes has no effect"), 1)
        self.assertEqual(run.errors(), [])

    def test_every_rank_has_samples_of_its_own(self):
        one = self.run_program("--nproc=1", "--train-iters=3", "--no-plots", outputs="one").steps()
        two = self.run_program("--nproc=2", "--train-iters=3", "--no-plots", outputs="two").steps()
        self.assertNotEqual(one[0]["loss"], two[0]["loss"])
        again = self.run_program("--nproc=2", "--train-iters=3", "--no-plots", outputs="again").steps()
        self.assertEqual([step["loss"] for step in two], [step["loss"] for step in again])

    def test_files(self):
        import numpy
        import pandas
        import xarray
        csv, jsonl, events = self.path("run.csv"), self.path("run.jsonl"), self.path("events")
        run = self.run_program("--nproc=2", "--train-iters=12", "--csv=" + csv, "--json-lines=" + jsonl,
                               "--tensorboard=" + events)
        for kind, ending in (("tplots", "txt"), ("svgs", "svg"), ("pngs", "png")):
            for metric in METRICS + ["times"]:
                self.assertGreater(os.path.getsize(self.path(f"out/{kind}/{metric}.{ending}")), 100)
        for metric in METRICS:
            self.assertRegex(run.out, rf"train/{metric} \[\d{{4}}-\d\d-\d\d-\d{{6}}\]")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            data = xarray.open_dataset(self.path("out/history.h5"))
        steps = run.steps()
        self.assertEqual(data.attrs["ranks"], "2")
        self.assertEqual(data.attrs["trace"], "trace.json")
        numpy.testing.assert_array_equal(data["iter"], [step["iter"] for step in steps])
        numpy.testing.assert_allclose(data["loss"], [step["loss"] for step in steps], rtol=1e-5)  # six digits
        self.assertEqual(data["dt_per_rank"].shape, (11, 2))
        self.assertEqual(data["iter"].dtype, numpy.int64)
        numpy.testing.assert_array_equal(data["dt_per_rank"].sel(rank=0), data["dt"])
        numpy.testing.assert_allclose(data["dt_per_rank"].mean("rank"), data["dt_mean"], rtol=1e-12)
        table = pandas.read_csv(csv)
        self.assertEqual(table["iter"].tolist(), [step["iter"] for step in steps])
        for name in ("dt", "dtf", "dtb", "sps"):  # what rank 0 has printed, with at least four digits
            numpy.testing.assert_allclose(table[name], [step[name] for step in steps], rtol=5.1e-4)
        with open(jsonl) as file:
            self.assertEqual([json.loads(line)["iter"] for line in file], [step["iter"] for step in steps])
        self.assertTrue(any(name.startswith("events.out.tfevents") for name in os.listdir(events)))

    def test_traffic_is_the_formula(self):
        import xarray
        for ranks in (2, 3):
            self.run_program(f"--nproc={ranks}", "--train-iters=5", "--no-plots", outputs=f"out{ranks}")
            data = xarray.open_dataset(self.path(f"out{ranks}/history.h5"))
            least = 2 * (ranks - 1) / ranks * 4 * 837632  # a ring's, of float32
            for sent in data["comm_bytes_dp"].values:
                self.assertAlmostEqual(sent / least, 1, delta=1e-3)  # parts of a bucket differ by an element

    def test_trace_shows_the_overlap(self):
        self.run_program("--nproc=2", "--train-iters=20", "--no-plots")
        with open(self.path("out/trace.json")) as file:
            spans = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
        for rank in (0, 1):
            own = [span for span in spans if span["pid"] == rank]
            backward = [(span["ts"], span["ts"] + span["dur"]) for span in own if span["name"] == "backward"]
            self.assertEqual(len(backward), 19)
            reduces = [span for span in own if span["name"] == "all_reduce"]
            # The first bucket of a step leaves while gradients are still formed: several begin in every backward, and
            # the last one begins after the first one did.
            inside = [[span for span in reduces if begin <= span["ts"] < end] for begin, end in backward]
            self.assertTrue(all(len(step) >= 5 for step in inside), [len(step) for step in inside])
            self.assertEqual(sum(span["args"]["bytes"] for span in inside[5]), 4 * 837632)

    def test_environment_variables(self):
        variables = {"TRAIN_ITERS": "4", "BATCH_SIZE": "16", "LAYERS": "64,32", "DTYPE": "bf16", "LOG_FREQ": "2"}
        run = self.run_program("--nproc=1", "--no-plots", variables=variables)
        self.assertEqual([step["iter"] for step in run.steps()], [2])
        config = dict(self.block(run, "CONFIG"))
        self.assertEqual((config["train_iters"], config["batch_size"], config["dtype"]), ("4", "16", "bfloat16"))
        self.assertIn("(2): Linear(in_features=32, out_features=128, bias=True)", run.out)
        run = self.run_program("--nproc=1", "--train-iters=3", "--no-plots", variables=variables, outputs="flags")
        self.assertEqual(dict(self.block(run, "CONFIG"))["train_iters"], "3")  # flags win

    def test_narrow_types_train(self):
        for dtype in ("bfloat16", "float16"):
            steps = self.run_program("--nproc=2", "--train-iters=20", "--no-plots", "--dtype=" + dtype, outputs=dtype).steps()
            self.assertLess(steps[-1]["loss"], 0.7 * steps[0]["loss"])

    def test_profile_covers_the_run(self):
        run = self.run_program("--nproc=2", "--train-iters=12")
        with open(self.path("out/profile.txt")) as file:
            tree = file.read()
        self.assertIn(tree, run.out)
        self.assertRegex(tree, r"Duration: [\d.]+ +CPU time: [\d.]+\n[\d.]+ main\n")
        self.assertRegex(tree, r"step  12 x\n")


if __name__ == "__main__":
    runs.main()
