"""Files of other programs in report: their units, what is NaN, steps with gaps, large and tiny numbers."""
import itertools
import os
import re
import unittest

import runs

NAN = float("nan")


class RanksTest(runs.ReportTest):
    def ranks(self, **arrays):
        self.write_arrays("run.h5", loss=[2.0, 1.5, 1.25], **arrays)
        self.report("run.h5", "--plots=none", "--html=page.html")
        return self.report_json("run.h5")["runs"][0]["ranks"]

    def test_the_slowest_rank_has_the_lowest_rate(self):
        ranks = self.ranks(sps_per_rank=([[80, 50, 100], [80, 60, 100], [80, 100, 90]], {"units": "1/s"}))["sps_per_rank"]
        self.assertEqual((ranks["medians"], ranks["slowest"], ranks["spread"]), ([80, 60, 100], 1, 0.75))
        self.assertEqual(ranks["slowest_shares"], [1 / 3, 2 / 3, 0])
        self.assertIn("<h3>Slowest rank</h3><p><b>rank 1</b> <small>0.75 times the median rank", self.text("page.html"))
        for style in ("text", "md"):
            text = self.report("run.h5", "--plots=none", "--format=" + style, "--columns=120")
            self.assertIn("slowest in sps_per_rank is rank 1, 0.75 times the median rank.", text)
            # Slowest first; 60 of 100.
            self.assertRegex(text, r"sps_per_rank[ |]+1[ |]+60[ |]+0.6[ |]+66.7 %[ |]*\n[ |]*sps_per_rank[ |]+0[ |]+80[ |]+0.8")

    def test_times_tell_before_rates(self):
        ranks = self.ranks(sps_per_rank=([[1, 2]] * 3, {"units": "1/s"}), dt_per_rank=([[1, 2]] * 3, {"units": "ms"}))
        self.assertEqual({name: numbers["slowest"] for name, numbers in ranks.items()}, {"sps_per_rank": 0, "dt_per_rank": 1})
        text = self.report("run.h5", "--plots=none", "--columns=120")
        self.assertIn("slowest in dt_per_rank is rank 1", text)
        self.assertNotIn("slowest in sps", text)
        self.assertRegex(text, r"dt_per_rank +1 +2 ms +2 +100.0 %")

    def test_other_numbers_tell_nothing(self):
        ranks = self.ranks(mfu_per_rank=([[40, 50]] * 3, {"units": "percent"}), load_per_rank=[[3, 4]] * 3)
        for numbers in ranks.values():
            self.assertEqual((numbers["slowest"], numbers["spread"], numbers["slowest_shares"]), (None, None, []))
        self.assertEqual(ranks["mfu_per_rank"]["medians"], [40, 50])
        self.assertNotIn("Slowest rank", self.text("page.html"))
        text = self.report("run.h5", "--plots=none", "--columns=120")
        self.assertNotIn("slowest in mfu", text)
        self.assertNotIn("slowest in load", text)
        self.assertRegex(text, r"mfu_per_rank +1 +50 +- +-\n +mfu_per_rank +0 +40 +- +-\n")

    def test_draws_of_the_warm_up_are_left_out(self):
        self.write_arrays("run.h5", loss=[2.0, 1.5, 1.25], dt_per_rank=[[9, 1], [1, 2], [1, 2]])
        ranks = self.report_json("run.h5", "--skip=1")["runs"][0]["ranks"]["dt_per_rank"]
        self.assertEqual((ranks["medians"], ranks["slowest_shares"]), ([1, 2], [0, 1]))


class MetricsTest(runs.ReportTest):
    def curves(self, *files):
        self.report(*files, "--html=page.html", "--plots=none")
        return self.curve_data(self.text("page.html"))

    def test_names_like_those_of_statistics_are_metrics(self):
        names = ("grad_norm", "grad_norm_max", "loss", "loss_std", "lr", "lr_min", "lr_max")
        self.write_arrays("run.h5", **{name: [1.0 + i, 2.0, 4.0] for i, name in enumerate(names)})
        text = self.report("run.h5", "--plots=none")
        for name in names:
            self.assertRegex(text, r"\n +%s +3 " % name)
        self.assertNotIn("over ranks", text)
        self.assertEqual(set(self.curves("run.h5")[1][0]), set(names))

    def test_whole_numbers_have_all_digits(self):
        self.write_arrays("run.h5", seen=[2.0**40, 2.0**40 + 1, 2.0**41], rate=[1234567.5, 1e12, 2e12], fixed=[2.0**40] * 3)
        text = self.report("run.h5", "--plots=none", "--columns=200")
        self.assertRegex(text, r"seen +3 +1,099,511,627,777 .* 1,099,511,627,776 +2,199,023,255,552 +2,199,023,255,552\n")
        self.assertRegex(text, r"rate +3 +1e12 ")
        self.curves("run.h5")
        self.assertIn("Constant: fixed (1,099,511,627,776).", self.text("page.html"))

    def test_the_smallest_numbers_have_plots(self):
        self.write_arrays("run.h5", loss=[-5e-324, 5e-324])
        self.assertIn("\u250c", self.report("run.h5"))


class StepsTest(runs.ReportTest):
    def steps(self, coordinate=None, **arrays):
        """The axis of the page, and the steps of MLflow's file of the loss."""
        count = len(next(iter(arrays.values())))
        self.write_arrays("run.h5", coordinate, loss=[1.0 / (1 + i) for i in range(count)], **arrays)
        self.report("run.h5", "--plots=none", "--html=page.html", "--mlflow=mlruns")
        (run,) = (name for name in os.listdir(self.path("mlruns/0")) if name != "meta.yaml")
        lines = self.text("mlruns/0/%s/metrics/loss" % run).splitlines()
        steps = self.curve_data(self.text("page.html"))[0]["runs"][0]["x"]["step"]
        self.assertEqual([int(line.split()[2]) for line in lines], steps)
        return steps

    def test_a_coordinate_numbers_the_draws(self):
        self.assertEqual(self.steps("step", step=[0, 100, 200, 300]), [0, 100, 200, 300])
        self.assertEqual(self.steps("step", step=[5, 4, 3]), [0, 1, 2], "not ascending")
        # The metric first.
        self.assertEqual(self.steps("draw", draw=[7, 8, 9], step=[70, 80, 90]), [70, 80, 90])
        self.assertEqual(self.steps("draw", draw=[7, 8, 9], step=[3, 2, 1]), [7, 8, 9])

    def test_gaps_lie_between_their_neighbours(self):
        self.assertEqual(self.steps(step=[10, 20, NAN, NAN, 50]), [10, 20, 30, 40, 50])
        self.assertEqual(self.steps(step=[NAN, 20, 30, 50, NAN]), [10, 20, 30, 50, 70])
        self.assertEqual(self.steps(step=[NAN, NAN, 7, NAN]), [5, 6, 7, 8])
        self.assertEqual(self.steps(step=[NAN, NAN]), [0, 1])
        self.assertEqual(self.steps(step=[NAN, NAN], iter=[3, 6]), [3, 6])


class TimesTest(runs.ReportTest):
    # 0.25 s in every unit.
    UNITS = {"s": 0.25, "ms": 250, "milliseconds": 250, "us": 250e3, "\u00b5s": 250e3, "ns": 250e6, "min": 0.25 / 60,
             "h": 0.25 / 3600}

    def test_times_in_any_unit(self):
        for units, dt in self.UNITS.items():
            self.write_arrays("run.h5", loss=[3.0, 2.0, 1.0], dt=([dt, dt, 2 * dt], {"units": units}))
            rates = self.report_json("run.h5")["runs"][0]["rates"]
            self.assertAlmostEqual(rates["steps"]["median"], 4, delta=1e-12, msg=units)
            self.report("run.h5", "--plots=none", "--html=page.html", "--mlflow=mlruns")
            page = self.text("page.html")
            self.assertIn("<h3>Median step</h3><p><b>250 ms</b>", page)
            for seconds, expected in zip(self.curve_data(page)[0]["runs"][0]["x"]["time"], (0.25, 0.5, 1)):
                self.assertAlmostEqual(seconds, expected, delta=1e-12, msg=units)
            (run,) = (name for name in os.listdir(self.path("mlruns/0")) if name != "meta.yaml")
            lines = self.text("mlruns/0/%s/metrics/loss" % run).splitlines()
            self.assertEqual([int(line.split()[0]) for line in lines], [250, 500, 1000], units)

    def test_times_in_unknown_units_give_no_rate_and_no_axis(self):
        self.write_arrays("run.h5", loss=[3.0, 2.0, 1.0], tokens=[8, 9, 8], dt=([5.0, 5, 6], {"units": "cycles"}))
        self.assertEqual(self.report_json("run.h5")["runs"][0]["rates"], {})
        self.report("run.h5", "--plots=none", "--html=page.html", "--mlflow=mlruns")
        page = self.text("page.html")
        self.assertIn("<h3>Median step</h3><p><b>5 cycles</b> <small>5 cycles to ", page)
        self.assertNotIn("time", self.curve_data(page)[0]["runs"][0]["x"])

    def test_the_lowest_rate_is_that_of_the_longest_time(self):
        times = [0.1, 0.2, 0.4, 0.8, 1.6]
        self.write_arrays("run.h5", dt=(times, {"units": "s"}), tokens=[10, 10, 10, 20, 100])
        rates = self.report_json("run.h5")["runs"][0]["rates"]
        # Percentiles of the times: 0.4 of the way from the first to the second, 0.6 from the fourth to the fifth.
        for name, tokens in (("steps", 1), ("tokens", 10)):
            for quantile, time in (("median", 0.4), ("p10", 1.28), ("p90", 0.14)):
                self.assertAlmostEqual(rates[name][quantile], tokens / time, delta=1e-12, msg=(name, quantile))

    def test_tokens_of_all_ranks_have_one_rate(self):
        everyone = {"long_name": "tokens per second of all ranks", "units": "1/s"}
        self.write_arrays("run.h5", dt=([0.5, 0.5, 0.5], {"units": "s"}), tokens=[64, 64, 64], tps=([120, 121, 122], everyone))
        self.assertEqual(list(self.report_json("run.h5")["runs"][0]["rates"]), ["steps", "tps"])
        self.report("run.h5", "--plots=none", "--html=page.html")
        self.assertIn("<h3>Tokens per second</h3><p><b>121</b>", self.text("page.html"))
        # Those of a rank are not the same.
        self.write_arrays("run.h5", dt=([0.5, 0.5, 0.5], {"units": "s"}), tokens=[64, 64, 64], tps=[60, 60, 60])
        self.assertEqual(list(self.report_json("run.h5")["runs"][0]["rates"]), ["steps", "tps", "tokens"])


class UnitsTest(runs.ReportTest):
    """Runs whose files use different units; a.h5 takes 1 s, b.h5 2000 ms."""

    def setUp(self):
        super().setUp()
        steps = [1 + i / 1000 for i in range(-5, 6)]
        self.write_arrays("a.h5", dt=(steps, {"units": "s"}), loss=([3.0 - i / 10 for i in range(11)], {"units": "nats"}))
        self.write_arrays("b.h5", dt=([2000 * dt for dt in steps], {"units": "ms"}),
                          loss=([5.0 - i / 10 for i in range(11)], {"units": "bits"}))
        self.steps = steps

    def test_times_are_compared_in_the_same_unit(self):
        for files, ratio, verdict in ((("a.h5", "b.h5"), 2, "higher"), (("b.h5", "a.h5"), 0.5, "lower")):
            dt, loss = self.report_json(*files)["comparison"]
            self.assertAlmostEqual(dt["ratio"], ratio, delta=1e-14)
            self.assertTrue(0.99 * ratio < dt["low"] <= dt["high"] < 1.01 * ratio, dt)
            self.assertEqual(dt["difference"], verdict)
            self.assertEqual([loss[name] for name in ("ratio", "low", "high", "difference")], [None] * 3 + ["other units"])

    def test_tables_say_the_units(self):
        text = self.report("a.h5", "b.h5", "--plots=none", "--columns=160")
        self.assertRegex(text, r"dt +b.h5 +1 s +2 s +2 +1.99 .. 2.01 +higher\n")
        self.assertRegex(text, r"loss +b.h5 +2.5 nats +4.5 bits +- +- +other units\n")
        self.assertIn('b.h5: other units than in the runs before it: loss ("bits", not "nats"); not compared, and not in '
                      "the plots of these.\n", text)
        self.assertNotIn("other units", self.report("b.h5", "b.h5", "--plots=none"))

    def test_plots_have_one_unit(self):
        dt, loss = (self.report("a.h5", "b.h5", "--plots=" + name).split("\u250c")[1] for name in ("dt", "loss"))
        # 0.995 to 2.01 s, and 2 to 3 nats.
        self.assertRegex(dt, r"\n *2.0 s")
        self.assertRegex(dt, r"\n *1.0 s")
        self.assertEqual(set(re.findall(r"\n *([0-9])", loss.split("\u2514")[0])), {"2", "3"})

    def test_curves_of_a_chart_have_one_unit(self):
        for files, units, dts in ((("a.h5", "b.h5"), "s", (1, 2)), (("b.h5", "a.h5"), "ms", (2000, 1000))):
            self.report(*files, "--plots=none", "--html=page.html")
            page = self.text("page.html")
            data, curves = self.curve_data(page)
            self.assertEqual({m["name"]: m["units"] for m in data["metrics"]}["dt"], units)
            for run, scale in zip(curves, dts):
                for value, dt in zip(run["dt"]["y"], self.steps):
                    self.assertAlmostEqual(value / (scale * dt), 1, delta=1e-14)
            self.assertIsNone(curves[1]["loss"])
        self.assertIn("[bits]; without a.h5, in nats", page)


class NanTest(runs.ReportTest):
    def page(self, **arrays):
        self.write_arrays("run.h5", **arrays)
        self.report("run.h5", "--plots=none", "--html=page.html")
        page = self.text("page.html")
        return page, self.curve_data(page)[1][0]

    def test_a_loss_that_ends_in_nan(self):
        loss = [3.0 - i / 1500 for i in range(2800)] + [NAN] * 200
        page, curves = self.page(loss=loss, dt=[0.1 + i % 2 for i in range(3000)])
        self.assertIn("<h3>Last loss</h3><p><b>NaN</b> <small>since draw 2,800; before it 1.134, minimum 1.134</small>", page)
        self.assertEqual(curves["loss"]["note"], "NaN or missing from step 2,800 on.")
        self.assertNotIn("note", curves["dt"])

    # The draw of a test has no step, so no loss.
    def test_a_last_draw_without_a_step_is_no_nan(self):
        page, curves = self.page(loss=[3.0, 2.0, 1.0, NAN], dt=[0.1, 0.2, 0.1, NAN], accuracy=[NAN, NAN, NAN, 0.5])
        self.assertIn("<h3>Last loss</h3><p><b>1</b> <small>minimum 1</small>", page)
        self.assertNotIn("note", curves["loss"])

    def test_nan_is_counted_where_points_are_many_draws(self):
        loss = [3.0 - i / 1500 for i in range(3000)]
        loss[1234] = loss[1300] = NAN
        _, curves = self.page(loss=loss, step=[10.0 * i for i in range(3000)])
        self.assertEqual(len(curves["loss"]["y"]), 1000)
        self.assertEqual(curves["loss"]["note"], "2 of 3,000 values are NaN or missing, the first at step 12,340.")
        loss[1300:1400] = [1.0] * 100
        loss[-1] = NAN
        self.assertEqual(self.page(loss=loss)[1]["loss"]["note"],
                         "1 of 2,999 values is NaN or missing, at step 1,234. NaN or missing from step 2,999 on.")

    def test_what_comes_late_or_rarely_is_no_nan(self):
        rare = list(itertools.chain(*([float(i), NAN, NAN, NAN] for i in range(5))))
        _, curves = self.page(loss=[1.0 + i for i in range(20)], late=[NAN] * 5 + [1.0 + i for i in range(15)], rare=rare)
        self.assertEqual([name for name, curve in curves.items() if "note" in curve], [])


if __name__ == "__main__":
    unittest.main(argv=["arrays_test"])
