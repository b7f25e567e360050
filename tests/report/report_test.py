"""report from its command line: numbers by hand, bad input in one line, narrow and plain terminals."""
import csv
import io
import itertools
import os
import re
import statistics
import subprocess
import unittest

import runs

NO_GNUPLOT = {"LC_ALL": "C.UTF-8", "PATH": "/nonexistent"}


class NumbersTest(runs.ReportTest):
    def test_statistics_are_those_of_python(self):
        self.write("run", "run.h5")
        metrics = self.report_json("run.h5")["runs"][0]["metrics"]
        times = [0.25] + [1e-3 + 1e-4 * (i % 10) for i in range(1, 100)]
        dt = metrics["dt"]
        # Nine equal steps to the percentiles of ten, as numpy interpolates ("inclusive").
        deciles = statistics.quantiles(times, n=10, method="inclusive")
        for name, value in (("median", statistics.median(times)), ("p10", deciles[0]), ("p90", deciles[8]),
                            ("mean", statistics.fmean(times)), ("min", min(times)), ("max", max(times)),
                            ("last", times[-1])):
            # Both sides round a handful of operations on these doubles.
            self.assertAlmostEqual(dt[name] / value, 1, delta=1e-14, msg=name)
        self.assertEqual((dt["n"], dt["nan"], dt["units"], dt["statistic"]), (100, 0, "s", "mean over ranks"))
        loss = metrics["loss"]
        self.assertEqual((loss["n"], loss["nan"], loss["positive_infinities"]), (98, 1, 1))

    def test_skip_leaves_out_the_warm_up(self):
        self.write("run", "run.h5")
        run = self.report_json("run.h5", "--skip=1")["runs"][0]
        self.assertEqual((run["metrics"]["dt"]["n"], run["draws"], run["skipped"]), (99, 100, 1))
        self.assertAlmostEqual(run["metrics"]["dt"]["max"], 1.9e-3, delta=1e-17)

    def test_rates_traffic_and_ranks(self):
        self.write("run", "run.h5")
        run = self.report_json("run.h5", "--skip=1")["runs"][0]
        median = statistics.median(1e-3 + 1e-4 * (i % 10) for i in range(1, 100))
        self.assertAlmostEqual(run["rates"]["steps"]["median"] * median, 1, delta=1e-14)
        self.assertAlmostEqual(run["rates"]["sps_world"]["median"] / run["rates"]["sps"]["median"], 2, delta=1e-14)
        dp = run["axes"]["dp"]
        self.assertEqual(dp["bytes_per_step"], 3350528)
        self.assertEqual(dp["total_bytes"], 99 * 3350528)
        self.assertAlmostEqual(dp["overlap"], 0.75, delta=1e-14)
        ranks = run["ranks"]["dt_per_rank"]
        self.assertEqual((ranks["slowest"], ranks["slowest_shares"]), (1, [0, 1]))
        # The median of the two medians lies between 1 and 1.25 times the first.
        self.assertAlmostEqual(ranks["spread"], 1.25 / 1.125, delta=1e-14)

    def test_axes_of_one_rank_are_left_out(self):
        self.write("run", "run.h5")
        run = self.report_json("run.h5")["runs"][0]
        self.assertEqual(list(run["axes"]), ["dp"])
        self.assertEqual([name for name in run["metrics"] if "tp" in name], [])
        self.assertIn("comm_bytes_dp", run["metrics"])
        self.report("run.h5", "--plots=none", "--html=" + self.path("page.html"))
        self.assertNotIn(b"_tp", self.bytes("page.html"))
        # Unless they are asked for.
        self.assertIn("comm_bytes_tp", self.report("run.h5", "--metrics=comm_bytes_tp", "--plots=none"))

    def test_statistics_over_ranks_stand_beside_their_mean(self):
        self.write("run", "run.h5")
        text = self.report("run.h5", "--plots=none", "--columns=160", "--skip=1")
        self.assertRegex(text, r"dt +99 +1.5 ms .* 1.312 ms .. 1.688 ms\n")
        self.assertNotIn("dt_min", text)
        self.assertIn("dt_min", self.report_json("run.h5")["runs"][0]["metrics"])
        self.assertIn("dt_min", self.report("run.h5", "--metrics=dt_min", "--plots=none"))

    def test_comparison_shows_what_changed(self):
        self.write("run", "run.h5")
        self.write("changed", "changed.h5")
        report = self.report_json("run.h5", "changed.h5", "--skip=1")
        self.assertEqual(report["changed_settings"], {"dtype": ["float32", "bfloat16"], "seed": ["1", "2"]})
        rows = {row["metric"]: row for row in report["comparison"]}
        self.assertAlmostEqual(rows["dt"]["ratio"], 0.5, delta=1e-14)
        self.assertEqual(rows["dt"]["difference"], "lower")
        self.assertEqual(rows["sps"]["difference"], "higher")
        self.assertEqual(rows["loss"]["difference"], "within the spread")
        self.assertLess(rows["dt"]["high"], 1)
        text = self.report("run.h5", "changed.h5", "--plots=none", "--columns=120")
        for line in (r"dtype +float32 +bfloat16", r"dt +changed.h5 +1.\d+ ms +\d+\.?\d* µs +0.5 .* lower"):
            self.assertRegex(text, line)
        self.assertIn("bootstrap", text)
        self.assertNotRegex(text.split("Changed settings")[1].split("\n\n")[0], "batch_size|layers")

    def test_the_environment_comes_behind_the_numbers(self):
        self.write("run", "run.h5")
        self.write("changed", "changed.h5")
        for style in ("--format=text", "--format=md"):
            text = self.report("run.h5", "changed.h5", "--plots=none", style)
            places = [text.index(word) for word in ("Changed settings", "Metrics", "Comparison", "Throughput", "Ranks",
                                                    "Runs", "node17", "0123abc")]
            self.assertEqual(places, sorted(places), style)

    def test_equal_runs_do_not_differ(self):
        self.write("run", "run.h5")
        self.write("run", "again.h5")
        report = self.report_json("run.h5", "again.h5")
        self.assertEqual(report["changed_settings"], {})
        for row in report["comparison"]:
            self.assertEqual(row["difference"], "within the spread", row)
        self.assertNotIn("Changed settings", self.report("run.h5", "again.h5", "--plots=none"))

    def test_csv_and_markdown(self):
        self.write("run", "run.h5")
        rows = list(csv.DictReader(io.StringIO(self.report("run.h5", "--format=csv"))))
        numbers = self.report_json("run.h5")["runs"][0]["metrics"]
        self.assertEqual([row["metric"] for row in rows], list(numbers))
        for row in rows:
            self.assertEqual(float(row["p90"]), numbers[row["metric"]]["p90"])
        text = self.report("run.h5", "--format=md")
        table = [line for line in text.split("## Metrics")[1].split("\n") if line.startswith("|")]
        self.assertEqual({line.count("|") for line in table[:11]}, {table[0].count("|")})
        self.assertRegex(table[1], r"^\| --- \| .*---: \|")

    def test_chosen_metrics(self):
        self.write("run", "run.h5")
        self.assertEqual(list(self.report_json("run.h5", "--metrics=dt,loss")["runs"][0]["metrics"]), ["dt", "loss"])
        self.report("run.h5", "--metrics=dt,lss", code=1)
        self.assertRegex(self.err, r"^report: .*run.h5: has no metric lss; it has loss, dt, .*\n$")
        # Of several runs, one that lacks it says so; the others are shown.
        self.write("late", "late.h5")
        self.assertIn("rare", self.report("run.h5", "late.h5", "--metrics=rare", "--plots=none", code=1))
        self.assertRegex(self.err, r"^report: .*run.h5: has no metric rare; it has loss, dt, .*\n$")


class InputTest(runs.ReportTest):
    def refused(self, expected, *arguments, code=1):
        self.assertEqual(self.report(*arguments, code=code), "")
        self.assertEqual(self.err.count("\n"), 1, self.err)
        self.assertRegex(self.err, "^report: " + expected)

    def test_a_page_replaces_nothing_but_a_page(self):
        self.write("run", "run.h5")
        self.write("run", "other.h5")
        os.link(self.path("run.h5"), self.path("same.html"))
        os.symlink("run.h5", self.path("link.html"))
        for name, text in (("notes.txt", "mine"), ("short.html", "<"), ("empty.h5", "")):
            with open(self.path(name), "w") as file:
                file.write(text)
        before = {name: self.bytes(name) for name in os.listdir(self.folder)}
        refused = "--html=.*/%s: is no page of an earlier report; name a new file\n$"
        self.refused(refused % "run.h5", "--html", "run.h5", "other.h5", code=2)
        for name in ("run.h5", "other.h5", "same.html", "link.html", "notes.txt", "short.html"):
            self.refused(refused % name, "run.h5", "--html=" + name, code=2)
        self.refused(refused % "empty.h5", "empty.h5", "--html=empty.h5", code=2)
        self.assertEqual({name: self.bytes(name) for name in os.listdir(self.folder)}, before)
        # Where there is nothing yet, where there is nothing in it, and a page.
        for name in ("new.html", "empty.h5", "new.html"):
            self.report("run.h5", "--html=" + name, "--plots=none")
            self.assertTrue(self.text(name).startswith("<!DOCTYPE html>"), name)

    def test_unusable_files(self):
        self.refused(r".*absent.h5: .*No such file", "absent.h5")
        with open(self.path("text.h5"), "w") as file:
            file.write("no HDF5\n")
        self.refused(r".*text.h5: not an HDF5 file", "text.h5")
        self.write("no_draws", "empty.h5")
        self.refused(r".*empty.h5: holds no draws yet", "empty.h5")
        self.write("newer", "newer.h5")
        self.refused(r".*newer.h5: .*99", "newer.h5")
        self.write("run", "run.h5")
        whole = self.bytes("run.h5")
        with open(self.path("cut.h5"), "wb") as file:
            file.write(whole[:len(whole) // 2])
        self.refused(r".*cut.h5: .*truncated", "cut.h5")
        self.refused(r".*run.h5: has 100 draws, and --skip=100 leaves none", "run.h5", "--skip=100")

    def test_wrong_command_lines(self):
        self.refused("expected the file of a run", code=2)
        self.refused("--format=xml: expected text, md, json or csv", "a.h5", "--format=xml", code=2)
        self.refused("unknown flag --skp; did you mean --skip", "a.h5", "--skp=1", code=2)

    def test_cut_output_is_an_error(self):
        path = self.write("run", "run.h5")
        for style in ("text", "json"):
            with open("/dev/full", "w") as full:
                run = subprocess.run([runs.REPORT, path, "--plots=none", "--format=" + style], stdout=full,
                                     stderr=subprocess.PIPE, text=True, env=runs.UTF8)
            self.assertEqual(run.returncode, 1, style)
            self.assertRegex(run.stderr, "^report: standard output cannot be written(: No space left on device)?\n$")

    def test_a_reader_that_has_seen_enough_is_no_error(self):
        path = self.write("run", "run.h5", 3)
        command = "'%s' '%s' --format=json | head -1" % (runs.REPORT, path)
        run = subprocess.run(command, shell=True, capture_output=True, text=True, env=runs.UTF8)
        self.assertEqual((run.stdout, run.stderr), ("{\n", ""))

    def test_a_bad_file_among_good_ones(self):
        self.write("run", "run.h5")
        out = self.report("run.h5", "absent.h5", "--plots=none", code=1)
        self.assertIn("run.h5", out)
        self.assertRegex(self.err, "absent.h5")

    def test_a_killed_run_with_its_journal(self):
        self.write("killed", "killed.h5")
        before = self.bytes("killed.h5"), self.bytes("killed.h5.journal")
        run = self.report_json("killed.h5")["runs"][0]
        self.assertEqual((run["draws"], run["journal_draws"], run["complete"]), (15, 5, False))
        self.assertEqual(run["metrics"]["loss"]["max"], 14)
        self.assertRegex(self.report("killed.h5", "--plots=none"), "5 draws are from its\\s+journal")
        self.assertEqual(before, (self.bytes("killed.h5"), self.bytes("killed.h5.journal")))

    def test_a_file_of_another_program(self):
        self.write("peers", "train_dataset.h5")
        run = self.report_json("train_dataset.h5")["runs"][0]
        self.assertEqual(set(run["metrics"]), {"train_iter", "train_loss", "train_dt"})
        self.assertAlmostEqual(run["metrics"]["train_loss"]["last"], 6.1, delta=1e-14)
        self.assertAlmostEqual(run["rates"]["steps"]["median"], 2.5, delta=1e-14)

    def test_metrics_that_appear_late_or_vanish(self):
        self.write("late", "late.h5")
        metrics = self.report_json("late.h5")["runs"][0]["metrics"]
        self.assertEqual((metrics["late"]["first_draw"], metrics["late"]["n"]), (50, 50))
        self.assertEqual((metrics["gone"]["last_draw"], metrics["gone"]["n"]), (49, 50))
        self.assertIsNone(metrics["never"]["median"])
        text = self.report("late.h5", "--plots=none", "--columns=160")
        for line in (r"late .* from draw 50 on\n", r"gone .* none after draw 49\n", r"rare .* in 10 draws\n",
                     r"never +0 .* no value\n"):
            self.assertRegex(text, line)
        self.report("late.h5", "--html=late.html", "--plots=none")
        self.assertIn("Without a finite value: never", self.text("late.html"))

    def test_nan_and_infinity_are_marked(self):
        self.write("run", "run.h5")
        self.assertRegex(self.report("run.h5", "--plots=none", "--columns=160"), r"loss .* 1 NaN, 1 \+Inf\n")
        self.assertRegex(self.report("run.h5", "--plots=loss"), "NaN")

    def test_texts_of_files_cannot_do_anything(self):
        self.write("hostile", "hostile.h5")
        for style in ("--format=md", "--format=text"):
            self.assertNotIn("\x1b", self.report("hostile.h5", "--plots=none", style))
        self.assertNotIn("<script>", self.report("hostile.h5", "--format=md"))
        self.report_json("hostile.h5")
        self.report("hostile.h5", "--html=page.html", "--plots=none")
        page = self.text("page.html")
        self.assertEqual(page.count("<script"), 2, "only the page's own")
        self.assertNotIn("<img", page)
        self.assertIn("&lt;script&gt;document.title=&#39;taken&#39;", page)
        self.assertIn("\ufffd\ufffd", page)

    def test_names_in_files_cannot_do_anything(self):
        self.write_arrays("a.h5", **{"loss\x1b[2J": [1.0, 0.5, 0.25]})
        for flag in ("--metrics=absent", "--plots=absent"):
            self.assertEqual(self.report("a.h5", flag, code=1), "")
            self.assertRegex(self.err, r"^report: .* absent; .* loss \[2J\n$")
        self.assertIn("a.h5,loss [2J,", self.report("a.h5", "--format=csv"))


class CurveDataTest(runs.ReportTest):
    def curves(self, *arguments):
        self.report(*arguments, "--html=page.html", "--plots=none")
        return self.curve_data(self.text("page.html"))

    def test_short_runs_are_there_to_the_last_bit(self):
        self.write("run", "run.h5")
        data, (curves,) = self.curves("run.h5")
        times = [0.25] + [1e-3 + 1e-4 * (i % 10) for i in range(1, 100)]
        self.assertEqual(curves["dt"], {"y": times, "sparse": False})
        loss = [2000.0 / (i + 1) + 300 for i in range(100)]
        loss[50:52] = [None, "Infinity"]
        self.assertEqual(curves["loss"]["y"], loss)
        x = data["runs"][0]["x"]
        self.assertEqual(x["step"], list(range(100)))
        self.assertEqual(x["time"], list(itertools.accumulate(times)))
        self.assertEqual([axis["name"] for axis in data["axes"]], ["step", "time"])
        # The warm-up is left out, but its time has passed.
        data, (curves,) = self.curves("run.h5", "--skip=1")
        self.assertEqual(curves["dt"]["y"], times[1:])
        self.assertEqual(data["runs"][0]["x"]["time"], list(itertools.accumulate(times))[1:])

    def test_long_runs_are_medians_and_extremes(self):
        self.write("run", "run.h5", 2500)
        data, (curves,) = self.curves("run.h5")
        times = [0.25] + [1e-3 + 1e-4 * (i % 10) for i in range(1, 2500)]
        parts = [times[i:i + 3] for i in range(0, 2500, 3)]
        self.assertEqual(data["runs"][0]["per_point"], 3)
        for key, of in (("y", statistics.median), ("low", min), ("high", max)):
            self.assertEqual(curves["dt"][key], [float("%.7g" % of(part)) for part in parts])
        self.assertEqual(data["runs"][0]["x"]["step"], [i + (len(part) - 1) // 2 for i, part in zip(range(0, 2500, 3), parts)])

    def test_no_charts_of_constants_and_of_steps(self):
        self.write("peers", "peers.h5")
        data, (curves,) = self.curves("peers.h5")
        # Its dt never changes.
        self.assertEqual(list(curves), ["train_loss"])
        self.assertIn("Constant: train_dt (0.4).", self.text("page.html"))
        self.write("run", "run.h5")
        self.assertNotIn("comm_bytes_dp", self.curves("run.h5")[1][0])
        # Two constants that differ are named both.
        self.write("tokens", "a.h5")
        self.write("tokens", "b.h5", 7)
        data, curves = self.curves("a.h5", "b.h5")
        self.assertEqual(list(curves[0]), ["loss"])
        self.assertEqual([run["x"] for run in data["runs"]],
                         [{"step": [10, 20, 30], "tokens": [100, 200, 300]}, {"step": [10, 20, 30], "tokens": [7, 14, 21]}])
        self.assertIn("Constant: tokens (100, 7).", self.text("page.html"))

    def test_names_of_metrics_and_files_stay_texts(self):
        self.write("hostile_names", "a<script>.h5")
        data, (curves,) = self.curves("a<script>.h5")
        self.assertEqual(set(curves), {"x</script><img src=x onerror=document.title=2>", "__proto__"})
        self.assertEqual(data["runs"][0]["label"], "a<script>.h5")
        self.assertEqual(self.text("page.html").count("<script"), 2)
        self.assertNotIn("<img", self.text("page.html"))


class TerminalTest(runs.ReportTest):
    def test_no_line_is_longer_than_the_terminal(self):
        self.write("run", "run.h5")
        self.write("changed", "changed.h5")
        for columns in (40, 60, 80, 120):
            for line in self.report("run.h5", "changed.h5", "--columns=%d" % columns).split("\n"):
                self.assertLessEqual(len(line), columns, line)
        narrow = self.report("run.h5", "--plots=none", environment=dict(runs.UTF8, COLUMNS="40"))
        self.assertLessEqual(max(map(len, narrow.split("\n"))), 40)
        # All that the wide one says is there.
        for word in ("median", "p10", "p90", "mean", "min", "max", "last", "1.5 ms", "3.195 MiB"):
            self.assertIn(word, narrow)

    def test_without_utf8_everything_is_ascii(self):
        self.write("run", "run.h5")
        plain = self.report("run.h5", environment=dict(runs.UTF8, LC_ALL="C"))
        self.assertTrue(plain.isascii())
        self.assertIn(" us", self.report("run.h5", "--metrics=dtf", environment=dict(runs.UTF8, LC_ALL="POSIX")))
        self.assertFalse(self.report("run.h5").isascii())

    def test_without_gnuplot_only_heat_maps_are_missing(self):
        self.write("experts", "run.h5")
        out = self.report("run.h5", "--html=page.html", environment=NO_GNUPLOT)
        self.assertIn("\u250c", out, "plots in the terminal need no gnuplot")
        self.assertIn("Metrics", out)
        page = self.text("page.html")
        self.assertEqual(len(re.findall(r"No heat maps: [^<]*gnuplot[^<]*apt-get install gnuplot-nox", page)), 1)
        self.assertIn('class="plot"', page)

    def test_loads_of_experts_are_heat_maps_of_the_page(self):
        self.write("experts", "a.h5")
        self.report("a.h5", "--html=a.html", "--plots=none")
        page = self.text("a.html")
        self.assertIn(">Load of experts</h2>", page)
        self.assertEqual(page.count('<svg class="heat"'), 2)
        self.assertIn("<h3>expert_load_3</h3>", page)
        self.assertIn("rows of an expert; vertical: expert", page)
        self.assertIn("1 of 1,600 values is NaN, at draw 50, expert 3.", page)
        self.assertNotIn("rgb(  0,   0,   1)", page)
        # Only what was asked for; the runs are told apart.
        self.write("experts", "b.h5")
        self.report("a.h5", "b.h5", "--html=ab.html", "--plots=none", "--metrics=loss,expert_load_1")
        page = self.text("ab.html")
        self.assertEqual(page.count('<svg class="heat"'), 2)
        self.assertIn("<h3>a.h5: expert_load_1</h3>", page)
        self.assertIn("<h3>b.h5: expert_load_1</h3>", page)

    def test_plots(self):
        self.write("run", "run.h5")
        self.assertIn("draw", self.report("run.h5", "--metrics=dt"))
        self.assertRegex(self.out, "1 of 100 values above .* not shown")
        self.assertNotRegex(self.report("run.h5", "--plots=none"), "not shown")

    def test_a_plot_of_no_metric_is_an_error(self):
        self.write("run", "run.h5")
        self.write("late", "late.h5")
        self.assertEqual(self.report("run.h5", "--plots=loss,lss", code=1), "")
        self.assertRegex(self.err, r"^report: --plots: no metric lss; there are loss, dt, dt_min, .*\n$")
        self.assertEqual(self.report("run.h5", "late.h5", "--plots=lss", code=1), "")
        self.assertRegex(self.err, r"^report: --plots: no metric lss; there are loss, dt, .*, late\n$")
        # One run has it.
        self.assertIn("\u250c", self.report("run.h5", "late.h5", "--plots=late"))
        self.assertEqual(self.report("run.h5", "--plots=loss", "--format=json", code=2), "")
        self.assertEqual(self.err, "report: --plots: expected with --format=text\n")

    def test_an_unwritable_page(self):
        self.write("run", "run.h5")
        self.report("run.h5", "--html=absent/page.html", "--plots=none", code=1)
        self.assertRegex(self.err, r"^report: .*absent.*\n$")


if __name__ == "__main__":
    unittest.main(argv=["report_test"])
