"""What a run prints and writes, and that it learns."""
import os
import statistics

import numpy

import image_runs
import runs

WORK = 16  # steps of an epoch: 1000 samples in batches of 64


def scores(model, images, layers, final_time):
    """(samples, rows, columns) -> (samples, 10): the convolutional network in NumPy."""
    def convolved(x, layer):
        windows = numpy.lib.stride_tricks.sliding_window_view(numpy.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
        return numpy.maximum(numpy.einsum("nirckl,oikl->norc", windows, model[layer + ".weight"]) + model[layer + ".bias"][:, None, None], 0)
    x = convolved(images[:, None], "opening")
    for i in range(layers):
        x = x + final_time / layers * convolved(convolved(x, f"layers.{i}.conv1"), f"layers.{i}.conv2")
    x = numpy.maximum(x.reshape(len(x), -1) @ model["closing_hidden.weight"].T + model["closing_hidden.bias"], 0)
    return x @ model["closing.weight"].T + model["closing.bias"]


class OutputTest(runs.OdeNetTest):
    def test_peaks_is_learnt(self):
        run = self.train("--layers=16", "--samples=5000", "--epochs=12", "--plots")
        points = run.points()
        self.assertEqual([point["epoch"] for point in points], list(range(1, 13)))
        self.assertGreater(max(point["val_acc"] for point in points), 85)  # 20 is chance
        for point in points:
            self.assertEqual(point["val_acc"] * 2, round(point["val_acc"] * 2), "of 200 points, each counts once")
        self.assertRegex(run.out, "Data: synthetic .*peaks.*: 5000 training and 200 validation samples of 2 numbers, 5 classes")
        history = self.history()
        for name in ("val_loss", "train_loss", "val_acc", "work_units"):
            numpy.testing.assert_allclose(history[name], [point[name] for point in points], rtol=0, atol=0.006, err_msg=name)
        for name in ("train_loss", "val_acc"):
            self.assertTrue(os.path.exists(self.path(f"out/svgs/{name}.svg")), name)

    def test_steps_of_one_are_the_finest_networks(self):
        """--final-time=0: all levels cover the time of the finest network, of 8 layers."""
        ones, of_eight = (self.train("--nested", "--nested-levels=2", f"--final-time={time}", outputs=f"t{time}").points()
                          for time in (0, 8))
        for one, other in zip(ones, of_eight, strict=True):
            self.assertEqual({**one, "dt": 0}, {**other, "dt": 0})

    def test_nested_iteration(self):
        run = self.train("--nested", "--epochs=3", "--nested-epochs=4", "--layers=16")
        points = run.points()
        self.assertEqual([(p["level"], p["layers"], p["epoch"]) for p in points],
                         [(2, 4, e) for e in (1, 2, 3, 4)] + [(1, 8, e) for e in (1, 2, 3, 4)] + [(0, 16, e) for e in (1, 2, 3)])
        work = numpy.cumsum([WORK / 4] * 4 + [WORK / 2] * 4 + [WORK] * 3)
        self.assertEqual([p["work_units"] for p in points], list(work))
        # A finer network goes on from where the coarse one was.
        self.assertLess(points[4]["train_loss"], points[0]["train_loss"])
        self.assertLess(points[8]["train_loss"], points[4]["train_loss"])
        history = self.history()
        self.assertEqual(list(history["level"]), [p["level"] for p in points])
        self.assertEqual(list(history["work_units"]), list(work))
        table = [line.split() for line in run.logged(r" *[0-2]  ")]
        self.assertEqual([row[:2] for row in table], [["2", "4"], ["1", "8"], ["0", "16"]])
        self.assertEqual([float(row[2]) for row in table], [work[3], work[7], work[10]])

    def test_without_training_a_finer_network_has_the_coarse_ones_results(self):
        """Interpolated weights are the same equation: one Euler step or two of half the size differ little."""
        still = ["--layers=64", "--final-time=4", "--lr=1e-9", "--initial-weights=0.5"]
        drawn = self.train(*still, outputs="drawn").points()[-1]["val_loss"]
        for way in ("constant", "linear"):
            points = self.train("--nested", "--nested-levels=2", "--nested-interpolation=" + way, *still, outputs=way).points()
            coarse, fine = points[1]["val_loss"], points[-1]["val_loss"]
            self.assertLess(abs(coarse - fine), 0.05)
            self.assertGreater(abs(drawn - coarse), 4 * abs(coarse - fine))  # other weights

    def test_layers_of_a_nested_run_have_their_own_times(self):
        """With --time-weights=spline, which has a buffer in each layer. 4 / 8 is exact in every type."""
        for dtype, ranks in (("float64", 1), ("bfloat16", 1), ("bfloat16", 2)):
            _, model = self.model("--nested", "--nested-levels=2", "--time-weights=spline", "--controls=4", "--final-time=4",
                                  "--dtype=" + dtype, ranks=ranks, name=dtype + str(ranks))
            for layer in range(8):
                self.assertEqual(float(model[f"layers.{layer}.time"][0]), layer * 4 / 8, (dtype, ranks))

    def test_ranks_and_strategies(self):
        both = ["--dtype=float64", "--nested", "--nested-levels=2", "--tikhonov=1e-3", "--tikhonov-time=1e-3",
                "--global-batch-size=60"]
        one = self.train(*both, outputs="one").points()
        for flags in (["--mesh=dp_replicate=2"], ["--strategy=zero2", "--mesh=dp_shard=2"], ["--strategy=zero1", "--mesh=dp_shard=2"],
                      ["--strategy=fsdp", "--mesh=dp_shard=2"]):
            two = self.train(*both, *flags, ranks=2, outputs="two" + flags[0][2:]).points()
            for a, b in zip(one, two, strict=True):
                self.assertEqual({**a, "dt": 0}, {**b, "dt": 0}, flags)

    def test_layer_parallel(self):
        """One level and converged solves have the numbers of serial propagation."""
        for flags in ([], ["--nested"], ["--time-weights=spline", "--controls=5"], ["--time-weights=piecewise", "--controls=4"]):
            both = [*flags, "--dtype=float64", "--layers=16", "--tikhonov=1e-4", "--tikhonov-time=1e-3"]
            name = "".join(flags)
            serial = self.train(*both, outputs="serial" + name).points()
            for i, solver in enumerate((["--lp-levels=1"], ["--lp-cfactor=2", "--lp-fwd-iters=9", "--lp-iters=9"])):
                parallel = self.train(*both, *solver, ranks=2, outputs=f"parallel{name}{i}").points()
                for a, b in zip(serial, parallel, strict=True):
                    self.assertEqual({**a, "dt": 0}, {**b, "dt": 0}, solver)

    def test_layers_of_a_coarse_level_come_from_all_ranks(self):
        """In bfloat16, as the optimizer's masters."""
        both = ["--nested", "--nested-levels=2", "--dtype=bfloat16", "--lp-levels=1"]
        one, two = (self.train(*both, ranks=ranks, outputs=f"ranks{ranks}").points() for ranks in (1, 2))
        for a, b in zip(one, two, strict=True):
            self.assertAlmostEqual(a["val_loss"], b["val_loss"], delta=0.01 * a["val_loss"])

    def test_bias_and_its_price(self):
        """Two micro-batches a step, 16 steps, of which 4 measure: 16 layers, 4 C-intervals. One iteration sweeps the coarse level and relaxes.
        To measure costs a cycle, or a serial pass, in both directions."""
        flags = ["--layers=16", "--final-time=1", "--dtype=float64", "--epochs=1", "--batch-size=32", "--gradient-accumulation-steps=2",
                 "--lp-fwd-iters=1", "--lp-iters=1", "--lp-bias-limit=1", "--lp-bias-every=5"]
        bias = {}
        for reference, fine, coarse in (("serial", 16, 0), ("iteration", (3 * 4 + 1) + 12, 7)):
            for ranks in (1, 2):
                name = reference + str(ranks)
                run = self.train(*flags, "--lp-bias-reference=" + reference, *(["--force-lp"] if ranks == 1 else []), ranks=ranks, outputs=name)
                lines = run.logged(("estimated " if reference == "iteration" else "") + "gradient bias ")
                self.assertEqual(len(lines), 4)
                bias[name] = float(lines[0].split("gradient bias ")[1].split()[0])
                self.assertIn("next 1 forward and 1 backward", lines[-1])
                history = self.history(name)
                self.assertEqual(list(history["fine_evaluations"] * ranks), [2 * 2 * (16 * 12 + 4 * fine)])
                self.assertEqual(list(history["evaluations"] * ranks), [2 * 2 * (16 * (12 + 4) + 4 * (fine + coarse))])
                self.assertGreater(history["gradient_bias"][0], 0)
        self.assertEqual(bias["serial1"], bias["serial2"])
        self.assertEqual(bias["iteration1"], bias["iteration2"])
        # Steps of size 1/16 and weights below 1 contract the error to a tenth or so.
        self.assertGreater(bias["serial1"], 1e-3)
        self.assertLess(abs(bias["iteration1"] - bias["serial1"]), 0.3 * bias["serial1"])

    def test_compare(self):
        run = self.train("--layers=16", "--epochs=10", "--compare", ranks=2)
        results = {}
        for name in ("layer-parallel", "serial"):
            line, = run.logged(name + ": ")
            results[name] = float(line.split("val_acc=")[1])
        self.assertEqual(results["layer-parallel"], run.points()[-1]["val_acc"])
        self.assertEqual(results["serial"], self.train("--layers=16", "--epochs=10", outputs="serial").points()[-1]["val_acc"])
        self.assertGreater(min(results.values()), 60)
        self.assertLess(abs(results["serial"] - results["layer-parallel"]), 15)
        # Serial means serial, whatever the parallel run chooses.
        run = self.train("--layers=16", "--epochs=10", "--compare", "--lp-auto", "--lp-bias-limit=1", ranks=2, outputs="auto")
        self.assertEqual(len(run.logged(".*--lp-auto chose")), 1)

    def test_layers_too_few_for_the_grid_are_propagated_serially(self):
        """The coarse network's four: no solver is chosen for it, and none with a down-cycle that nobody asked for."""
        run = self.train("--nested", "--nested-levels=2", "--nested-cfactor=4", "--layers=16", "--lp-cfactor=8", "--epochs=10",
                         "--nested-epochs=10", "--lp-auto", "--lp-bias-limit=1", ranks=2)
        self.assertEqual(len(run.logged(".*--lp-auto chose")), 1)

    def test_regularisation_is_felt(self):
        losses = [self.train("--epochs=6", *flags, outputs=f"o{i}").points()[-1]["train_loss"] for i, flags in enumerate(
            ([], ["--tikhonov=1"], ["--tikhonov-time=1"]))]
        self.assertGreater(losses[1], losses[0] + 0.05)
        self.assertNotEqual(losses[2], losses[0])

    def test_weights_in_time(self):
        for weights in ("piecewise", "spline"):
            run = self.train("--time-weights=" + weights, "--controls=4", "--epochs=6", outputs=weights)
            points = run.points()
            self.assertLess(points[-1]["val_loss"], 0.8 * points[0]["val_loss"])
            self.assertIn("4 control points", run.out)

    def test_resnet(self):
        self.assertIn("8 x u + 1 F(u)", self.train("--final-time=0").out)

    def test_indian_pines(self):
        runs.write_pines(self.path("pines"))
        for form in ("dense", "conv"):
            run = self.train("--problem=indian_pines", "--data=" + self.path("pines"), "--form=" + form, "--epochs=30",
                             "--batch-size=16", outputs=form)
            self.assertGreater(run.points()[-1]["val_acc"], 90)
            self.assertRegex(run.out, r"Data: Indian Pines in \S+pines, 12 x 10 x 9: .* samples of 9 numbers, 3 classes")
        runs.write_pines(self.path("no_cube"), bands=0)
        out = self.train("--problem=indian_pines", "--data=" + self.path("no_cube"), outputs="made").out
        self.assertRegex(out, r"Data: synthetic cube \(generated\) with the real ground truth of \S+no_cube, 12 x 10 x 200")

    def test_images(self):
        for problem in ("fashion", "mnist"):
            run = self.train("--problem=" + problem, "--max-samples=64", "--layers=2", outputs=problem)
            self.assertRegex(run.out, "64 training and 64 test images of 28 x 28, 10 classes")
            self.assertIn("Conv2d(4, 4, kernel_size=(3, 3)", run.out)
            self.assertEqual(len(run.points()), 2)
        self.assertIn("Data: synthetic", run.out)  # MNIST without --data

    def test_numbers_are_those_of_the_saved_model(self):
        """On one rank, and where layers are on two."""
        folder = self.path("images")
        image_runs.write_idx(folder, train=96, test=37)
        images, labels = image_runs.read_idx_tests(folder)
        flags = ["--problem=mnist", "--data=" + folder, "--dtype=float64", "--layers=12", "--lp-fwd-iters=4", "--lp-iters=4"]
        for ranks in (1, 2):
            run, model = self.model(*flags, ranks=ranks, name=f"of_{ranks}")
            expected = scores(model, images, layers=12, final_time=1)
            log_probabilities = expected - numpy.log(numpy.exp(expected).sum(1, keepdims=True))
            point = run.points()[-1]
            self.assertAlmostEqual(point["val_loss"], -numpy.mean(log_probabilities[range(37), labels]), delta=6e-7)
            self.assertAlmostEqual(point["val_acc"], 100 * numpy.mean(expected.argmax(1) == labels), delta=6e-3)

    def test_study(self):
        run = self.train("--study", "--study-seeds=2", "--samples=100", "--epochs=2", "--layers=4", "--nested-levels=2")
        lines = [dict(part.split("=") for part in line.split()) for line in run.logged("channels=")]
        self.assertEqual(len(lines), 2 * 4 * 2 * 2)
        self.assertEqual(len({tuple(sorted((name, line[name]) for name in ("channels", "nested", "tikhonov",
                                                                           "initial_weights", "seed"))) for line in lines}), 32)
        # Two epochs of 4 layers and of 2: the work of three of 4.
        self.assertEqual({line["work_units"] for line in lines}, {lines[0]["work_units"]})
        for i, channels in enumerate(("5", "8")):
            tables = {name: run.logged(f" *{name} +[0-9]")[i].split() for name in ("Mean", "Median", "Max", "Min", "Std. Dev")}
            for column, nested in ((-2, "1"), (-1, "0")):
                chosen = [float(line["val_acc"]) for line in lines if line["channels"] == channels and line["nested"] == nested]
                for name, expected in (("Mean", statistics.mean(chosen)), ("Median", statistics.median(chosen)), ("Max", max(chosen)),
                                       ("Min", min(chosen)), ("Std. Dev", statistics.stdev(chosen))):
                    self.assertAlmostEqual(float(tables[name][column].rstrip("%")), expected, delta=0.0051, msg=name)


if __name__ == "__main__":
    runs.main()
