"""report's page in a headless Chromium: on a phone and a desk, in light and dark, without a word in the console.

Pictures of all pages go to the test's outputs.
"""
import itertools
import math
import os
import re
import unittest

import browser
import runs

SIZES = {"phone": (375, 800), "desk": (1280, 900)}
# Contrast of text that WCAG 2.1 asks for (level AA), and of lines and bars.
TEXT_CONTRAST, SHAPE_CONTRAST = 4.5, 3.0

# Colours as painted: of each text against the nearest background behind it.
MEASURE = r"""
(function () {
  function rgb(text) { var m = text.match(/[\d.]+/g).map(Number); return m.length < 4 ? m.concat(1) : m; }
  function light(c) {
    var l = c.slice(0, 3).map(function (v) {
      v /= 255;
      return v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4);
    });
    return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2];
  }
  function contrast(a, b) {
    var x = light(a), y = light(b);
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  }
  function behind(element) {
    for (; element; element = element.parentElement) {
      var c = rgb(getComputedStyle(element).backgroundColor);
      if (c[3] === 1) return c;
    }
    return [255, 255, 255, 1];
  }
  var texts = [], shapes = [], seen = 0;
  document.body.querySelectorAll("*").forEach(function (element) {
    var style = getComputedStyle(element), box = element.getBoundingClientRect();
    if (box.width === 0 || style.visibility === "hidden" || element.closest("script, style")) return;
    var own = Array.prototype.some.call(element.childNodes, function (node) {
      return node.nodeType === 3 && node.textContent.trim() !== "";
    });
    var svg = element instanceof SVGElement;
    if (own) {
      ++seen;
      var ratio = contrast(rgb(svg ? style.fill : style.color), behind(element));
      if (ratio < TEXT) texts.push(element.textContent.slice(0, 30) + " " + ratio.toFixed(2));
    }
    if (element.matches(".series path")) {
      var line = contrast(rgb(style.stroke), behind(element));
      if (line < SHAPE) shapes.push("line " + line.toFixed(2));
    }
    if (element.matches(".bar")) {
      var bar = contrast(rgb(style.backgroundColor), behind(element.parentElement));
      if (bar < SHAPE) shapes.push(element.className + " " + bar.toFixed(2));
    }
  });
  return { texts: texts, shapes: shapes, seen: seen };
})()
""".replace("TEXT)", "%s)" % TEXT_CONTRAST).replace("SHAPE)", "%s)" % SHAPE_CONTRAST)

# Of every chart: how many points its curves have, and whether they lie in the chart.
CHARTS = r"""
Array.prototype.map.call(document.querySelectorAll("svg.chart"), function (svg) {
  var points = 0, outside = 0, box = svg.getBoundingClientRect();
  svg.querySelectorAll(".series path").forEach(function (line) {
    points += line.getAttribute("d").match(/[-\d.]+,[-\d.]+/g).length;
  });
  svg.querySelectorAll(".dots circle").forEach(function (dot) {
    var at = dot.getBoundingClientRect();
    if (at.left < box.left || at.right > box.right) ++outside;
  });
  return { name: svg.closest("figure").querySelector("h3").textContent, points: points, outside: outside,
           width: box.width, height: box.height, label: svg.getAttribute("aria-label"),
           series: svg.querySelectorAll(".series").length };
})
"""

STRUCTURE = r"""
(function () {
  var ids = Array.prototype.map.call(document.querySelectorAll("[id]"), function (e) { return e.id; });
  return {
    headings: Array.prototype.map.call(document.querySelectorAll("h1, h2, h3"), function (e) { return e.tagName; }),
    repeated: ids.filter(function (id, i) { return ids.indexOf(id) !== i; }),
    broken: Array.prototype.filter.call(document.querySelectorAll("nav a"), function (a) {
      return !document.querySelector(a.getAttribute("href"));
    }).length,
    unnamed: document.querySelectorAll("[role=img]:not([aria-label]), [role=region]:not([aria-label])").length,
    unscoped: document.querySelectorAll("th:not([scope])").length,
    lang: document.documentElement.lang
  };
})()
"""


class PageTest(runs.ReportTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser().__enter__()
        cls.addClassCleanup(cls.browser.__exit__)

    def page(self, *files, size="desk", dark=False, script=True, arguments=()):
        self.report(*files, "--html=page.html", "--plots=none", *arguments)
        return self.open(size, dark, script)

    def open(self, size="desk", dark=False, script=True):
        return self.browser.open("file://" + self.path("page.html"), *SIZES[size], dark, script)

    def keep_picture(self, page, name):
        folder = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR", self.folder)
        page.screenshot(os.path.join(folder, name + ".png"))

    def check(self, page, name):
        self.assertEqual(page.problems, [], name)
        self.assertEqual([url for url in page.requests if not url.startswith(("file:", "data:"))], [], name)
        self.assertEqual(len([url for url in page.requests if url.startswith("file:")]), 1, name)
        # Not innerWidth: a phone zooms out until a page that is too wide fits.
        width = page.evaluate("document.scrollingElement.scrollWidth")
        self.assertLessEqual(width, page.width, name + ": the page scrolls sideways")
        colours = page.evaluate(MEASURE)
        self.assertEqual(colours["texts"], [], name)
        self.assertEqual(colours["shapes"], [], name)
        self.assertGreater(colours["seen"], 50)
        for chart in page.evaluate(CHARTS):
            self.assertGreaterEqual(chart["points"], 2, chart)
            self.assertEqual(chart["outside"], 0, chart)
            self.assertGreater(min(chart["width"], chart["height"]), 100, chart)
            self.assertIn(chart["name"], chart["label"])
        return page

    def check_all_ways(self, name, *files, arguments=()):
        self.page(*files, arguments=arguments)
        for size in SIZES:
            for dark in (False, True):
                way = "%s_%s_%s" % (name, size, "dark" if dark else "light")
                page = self.open(size, dark)
                self.keep_picture(page, way)
                self.check(page, way)

    def test_one_run(self):
        self.write_trace()
        self.write("run", "run.h5")
        self.check_all_ways("one_run", "run.h5")
        names = [chart["name"] for chart in self.open().evaluate(CHARTS)]
        self.assertEqual(names[:4], ["loss", "dt", "dtf", "dtb"])
        # comm_bytes_dp is the same at all steps.
        self.assertEqual(len(names), 8)
        self.assertNotIn("comm_bytes_dp", names)

    def test_two_runs(self):
        self.write_trace()
        self.write("run", "run.h5")
        self.write("changed", "changed.h5", 250)
        self.check_all_ways("two_runs", "run.h5", "changed.h5")
        page = self.open()
        self.assertEqual({chart["series"] for chart in page.evaluate(CHARTS)}, {2})
        changes = page.evaluate("document.querySelector('section[aria-labelledby=changes]').textContent")
        self.assertRegex(changes, "dtype.*float32.*bfloat16")
        self.assertNotIn("batch_size", changes)
        self.assertIn("lower", page.evaluate("document.querySelector('[aria-labelledby=comparison]').textContent"))

    def test_difficult_files(self):
        for kind in ("late", "hostile", "peers", "killed"):
            self.write(kind, kind + ".h5")
            self.check_all_ways(kind, kind + ".h5")
            page = self.open()
            self.assertEqual(page.evaluate("document.title"), kind + ".h5")
            self.assertEqual(page.evaluate("document.scripts.length"), 2)
        marked = self.page("late.h5").evaluate("document.body.textContent")
        self.assertIn("from draw 50 on", marked)

    def test_a_long_run_with_extremes(self):
        self.write("run", "run.h5", 200000)
        self.check_all_ways("long_run", "run.h5")
        self.assertLess(len(self.bytes("page.html")), 1 << 20)
        page = self.open()
        self.assertGreater(page.evaluate("document.querySelectorAll('.band polygon').length"), 5)
        text = page.evaluate("document.body.textContent")
        self.assertIn("1 point beyond the axis", text)
        clipped = "document.querySelectorAll('svg.chart')[1].querySelectorAll('.marks path').length"
        self.assertEqual(page.evaluate(clipped), 1)

    def test_few_values_are_shown_whole(self):
        self.write("run", "few.h5", 3)
        page = self.page("few.h5")
        self.assertGreater(page.evaluate("document.querySelectorAll('svg.chart').length"), 3)
        # The infinite loss alone.
        self.assertEqual(page.evaluate("document.querySelectorAll('.marks path').length"), 1)
        self.assertNotRegex(page.evaluate("document.body.textContent"), r"\d points? beyond the axis")

    def test_structure(self):
        self.write_trace()
        self.write("run", "run.h5")
        structure = self.page("run.h5").evaluate(STRUCTURE)
        self.assertEqual(structure["headings"].count("H1"), 1)
        self.assertEqual(structure["headings"][0], "H1")
        self.assertEqual((structure["repeated"], structure["broken"], structure["unnamed"], structure["unscoped"]),
                         ([], 0, 0, 0))
        self.assertEqual(structure["lang"], "en")

    def test_timeline(self):
        self.write_trace()
        self.write("run", "run.h5")
        page = self.page("run.h5", size="phone")
        self.assertRegex(page.evaluate("document.querySelector('.timeline h3').textContent"),
                         "^Step 1, 2 ms: the median of 3 steps")
        ranks = page.evaluate(r"""
            Array.prototype.map.call(document.querySelectorAll(".rank"), function (rank) {
              var places = { name: rank.querySelector("b").textContent, width: rank.clientWidth, text: rank.textContent };
              var left = rank.getBoundingClientRect().left;
              rank.querySelectorAll(".bar").forEach(function (bar) {
                var box = bar.getBoundingClientRect();
                places[bar.textContent] = [(box.left - left) / rank.clientWidth, (box.right - left) / rank.clientWidth];
              });
              return places;
            })""")
        self.assertEqual([rank["name"] for rank in ranks], ["rank 0 (node17)", "rank 1 (node17)"])
        for rank in ranks:
            for bar, place in (("forward", (0, 0.25)), ("backward", (0.25, 0.75)), ("optimizer", (0.75, 1)),
                               ("all_reduce", (0.5, 1))):
                # Half a pixel of 300 or so.
                self.assertAlmostEqual(rank[bar][0], place[0], delta=0.005, msg=bar)
                self.assertAlmostEqual(rank[bar][1], place[1], delta=0.005, msg=bar)
            # Half behind backward, half behind the optimizer.
            self.assertIn("messages 1 ms, 100.0 % overlapped with computation", rank["text"])

    # Of chart 1, dt: the pointer at a share of the axes' width; what it reads.
    def read_at(self, page, share):
        page.evaluate("document.querySelectorAll('svg.chart')[1].scrollIntoView({block: 'center'})")
        box = page.evaluate("""(function () {
            var box = document.querySelectorAll("svg.chart")[1].querySelector(".frame").getBoundingClientRect();
            return [box.left + %r * box.width, box.top + box.height / 2]; })()""" % share)
        page.move_to(*box)
        return page.evaluate("Array.from(document.querySelectorAll('.readout')[1].children, e => e.textContent)")

    def set(self, page, name, value):
        page.evaluate("""(function () {
            var input = document.querySelector(".controls").elements["%s"];
            if (input.type === "checkbox") input.checked = %s; else input.value = "%s";
            input.dispatchEvent(new Event("input", { bubbles: true })); })()""" % (name, value, value))

    # Of chart 1: the curve's points in shares of the axes, y upwards.
    def curve(self, page, series=0):
        return page.evaluate("""(function () {
            var svg = document.querySelectorAll("svg.chart")[1], frame = svg.querySelector(".frame").getBBox();
            return svg.querySelectorAll("g[class^='series c'] path")[%d].getAttribute("d").match(/[-\\d.]+,[-\\d.]+/g).map(
                function (pair) {
                  var at = pair.split(",").map(Number);
                  return [(at[0] - frame.x) / frame.width, 1 - (at[1] - frame.y) / frame.height];
                }); })()""" % series)

    def test_values_under_the_pointer(self):
        self.write("run", "run.h5")
        page = self.page("run.h5")
        step, value = re.fullmatch(r"step (\d+) ([\d.]+) ms", " ".join(self.read_at(page, 0.5))).groups()
        self.assertIn(int(step), (49, 50))
        self.assertAlmostEqual(float(value), 1 + 0.1 * (int(step) % 10), delta=1e-9)
        self.assertEqual(page.evaluate("document.querySelectorAll('.readout')[0].textContent"), "")
        # 250 ms at first, then 144 ms.
        self.set(page, "x", "time")
        self.assertRegex(" ".join(self.read_at(page, 1)), r"^time 394 ms 1\.9 ms$")
        self.assertEqual(page.problems, [])

    def test_axes_smoothing_and_log_scale(self):
        self.write("run", "run.h5")
        page = self.page("run.h5")
        times = [0.25] + [1e-3 + 1e-4 * (i % 10) for i in range(1, 100)]
        sums = list(itertools.accumulate(times))
        # 0.01 of 288 and of 166 units, twice.
        for (x, _), i in zip(self.curve(page), range(100)):
            self.assertAlmostEqual(x, i / 99, delta=1e-4)
        self.set(page, "x", "time")
        for (x, _), t in zip(self.curve(page), sums):
            self.assertAlmostEqual(x, (t - sums[0]) / (sums[-1] - sums[0]), delta=1e-4)
        self.set(page, "log", "true")
        places = self.curve(page)
        # The axis spans two decades and more: places of 1 ms and 2 ms give those of the others.
        unit = (places[19][1] - places[10][1]) / math.log10(times[19] / times[10])
        for (_, y), t in zip(places[10:], times[10:]):
            self.assertAlmostEqual(y, places[10][1] + unit * math.log10(t / times[10]), delta=2e-4)
        self.set(page, "smoothing", "0.9")
        smooth, total, weight = [], 0, 0
        for t in times:
            total, weight = 0.9 * total + 0.1 * t, 0.9 * weight + 0.1
            smooth.append(total / weight)
        places = self.curve(page)
        unit = (places[90][1] - places[30][1]) / math.log10(smooth[90] / smooth[30])
        for (_, y), t in zip(places[20:], smooth[20:]):
            self.assertAlmostEqual(y, places[30][1] + unit * math.log10(t / smooth[30]), delta=1e-3)
        self.assertEqual(page.evaluate("document.querySelectorAll('svg.chart')[1].querySelectorAll('.faint').length"), 1)
        self.assertEqual(page.evaluate("document.querySelector('[name=x] [hidden]').value"), "tokens")
        self.assertEqual(page.problems, [])

    # A label stands where the curve, whose ends are known, has its value. Of numbers without one between them, too, the
    # page comes.
    def test_ticks_of_close_numbers_say_where_they_are(self):
        self.write("close", "close.h5")
        page = self.page("close.h5")
        self.assertEqual(page.evaluate("document.querySelectorAll('svg.chart').length"), 2)
        ticks = page.evaluate("""Array.from(document.querySelectorAll("svg.chart")[0].querySelectorAll(
            ".ticks text[text-anchor=end]"), e => [Number(e.getAttribute("y")) - 4, e.textContent])""")
        heights = page.evaluate("""document.querySelectorAll("svg.chart")[0].querySelector(".series path").getAttribute("d")
            .match(/[-\\d.]+,[-\\d.]+/g).map(pair => Number(pair.split(",")[1]))""")
        self.assertEqual(len(heights), 10)
        self.assertGreaterEqual(len(ticks), 3)
        unit = (heights[9] - heights[0]) / 9e-5
        for y, text in ticks:
            # The curve's places have two decimals.
            self.assertAlmostEqual(y, heights[0] + unit * (float(text) - 1), delta=0.05, msg=text)
        self.assertEqual(page.problems, [])

    def test_runs_of_one_name_are_told_apart_and_switched_off(self):
        for folder in ("a", "b"):
            os.mkdir(self.path(folder))
        self.write("run", "a/run.h5")
        self.write("changed", "b/run.h5")
        page = self.page("a/run.h5", "b/run.h5")
        labels = "Array.from(document.querySelectorAll('.runs label'), e => e.textContent)"
        self.assertEqual(page.evaluate(labels), ["a/run.h5", "b/run.h5"])
        series = "Array.from(document.querySelectorAll('svg.chart')[1].querySelectorAll('.series'), e => e.dataset.name)"
        self.assertEqual(page.evaluate(series), ["a/run.h5", "b/run.h5"])
        page.evaluate("document.querySelectorAll('.runs input')[0].click()")
        self.assertEqual(page.evaluate(series), ["b/run.h5"])
        self.assertEqual(" ".join(self.read_at(page, 1)), "step 99 950 µs")
        page.evaluate("document.querySelectorAll('.runs input')[1].click()")
        self.assertEqual(page.evaluate(series), [])
        self.assertEqual(page.problems, [])

    def test_a_comparison_on_a_phone(self):
        self.write("run", "run.h5")
        self.write("changed", "changed.h5")
        page = self.page("run.h5", "changed.h5", size="phone")
        boxes = page.evaluate("""Array.from(document.querySelectorAll("[aria-labelledby=comparison] td"), function (cell) {
            var box = cell.getBoundingClientRect();
            return [box.left, box.right, getComputedStyle(cell, "::before").content]; })""")
        self.assertGreater(len(boxes), 20)
        for left, right, column in boxes:
            self.assertTrue(0 <= left < right <= 375, (left, right))
            self.assertIn(column.strip('"'), ("run", "first", "other", "ratio", "interval", "difference"))

    def test_hostile_names_do_nothing(self):
        for folder in ("1<", "2<"):
            os.mkdir(self.path(folder))
            self.write("hostile_names", folder + "/script><img src=x onerror=document.title=1>.h5")
        page = self.page(*(folder + "/script><img src=x onerror=document.title=1>.h5" for folder in ("1<", "2<")))
        self.check(page, "hostile names")
        self.assertRegex(page.evaluate("document.title"), "^1</script><img")
        self.assertEqual(page.evaluate("document.images.length + document.scripts.length"), 2)
        self.assertEqual(page.evaluate(CHARTS)[0]["name"], "x</script><img src=x onerror=document.title=2>")
        self.assertEqual(len(self.read_at(page, 0.5)), 3)
        self.assertEqual(page.problems, [])

    # Of names that JavaScript's objects have, too.
    def test_units_of_any_name(self):
        self.write_arrays("run.h5", loss=([30.0, 20.0, 11.5], {"units": "constructor"}),
                          seen=([2.0**40, 2.0**40 + 1, 2.0**41], {"units": "toString"}))
        page = self.page("run.h5")
        self.assertEqual(page.problems, [])
        self.assertEqual([chart["points"] for chart in page.evaluate(CHARTS)], [3, 3])
        # Counts with all digits.
        self.assertEqual(" ".join(self.read_at(page, 1)), "step 2 2,199,023,255,552")

    def test_captions_say_what_is_nan(self):
        loss = [3.0 - i / 1500 for i in range(2800)] + [math.nan] * 200
        loss[1234] = math.nan
        dt = [0.1 + i % 2 for i in range(3000)]
        self.write_arrays("a.h5", loss=loss, dt=dt)
        page = self.page("a.h5")
        self.keep_picture(page, "nan")
        captions = "Array.from(document.querySelectorAll('figure[data-metric] figcaption'), e => e.textContent)"
        text = "1 of 2,800 values is NaN or missing, at step 1,234. NaN or missing from step 2,800 on."
        self.assertEqual(page.evaluate(captions), [text, ""])
        self.write_arrays("b.h5", loss=dt, dt=dt)
        page = self.page("a.h5", "b.h5")
        self.assertEqual(page.evaluate(captions), ["a.h5: " + text, ""])
        page.evaluate("document.querySelectorAll('.runs input')[0].click()")
        self.assertEqual(page.evaluate(captions), ["", ""])
        self.assertEqual(page.problems, [])

    def test_a_page_that_follows_a_run_keeps_what_the_reader_has_set(self):
        writer = self.grow("run.h5")
        for _ in range(3):
            self.append(writer)
        _, port = self.follow("run.h5")
        page = self.browser.open("http://127.0.0.1:%d/" % port, *SIZES["desk"], False, True)
        wait = """new Promise(function (done) {
            (function look() {
              const data = JSON.parse(document.getElementById("curve-data").textContent);
              if (data.runs[0].draws === %d) done(document.querySelector(".series path").getAttribute("d"));
              else setTimeout(look, 20);
            })(); })"""
        self.assertEqual(page.evaluate(wait % 3).count(","), 3)
        self.set(page, "log", "true")
        self.append(writer)
        self.append(writer)
        line = page.evaluate(wait % 5)
        self.assertEqual(line.count(","), 5)
        self.assertTrue(page.evaluate("document.querySelector('.controls').elements.log.checked"))
        # 1 to 1/5 on the log scale: the middle, 1/3, is at log 3 / log 5.
        places = [float(pair.split(",")[1]) for pair in re.findall(r"[-\d.]+,[-\d.]+", line)]
        self.assertAlmostEqual((places[2] - places[0]) / (places[4] - places[0]), math.log(3) / math.log(5), delta=1e-3)
        self.assertEqual([url for url in page.requests if not url.startswith(("http://127.0.0.1:%d/" % port, "data:"))], [])
        self.assertEqual(page.problems, [])

    def test_without_its_script(self):
        self.write_trace()
        self.write("run", "run.h5")
        self.page("run.h5")
        with_script, without = self.open(), self.open(script=False)
        self.check(without, "script")
        text = "Array.from(document.querySelectorAll('table, .timeline, .tiles'), e => e.innerText)"
        self.assertEqual(without.evaluate(text), with_script.evaluate(text))
        self.assertIn("Curves need JavaScript", without.evaluate("document.body.innerText"))
        self.assertEqual(without.evaluate("document.querySelector('.controls').offsetHeight"), 0)


if __name__ == "__main__":
    unittest.main(argv=["browser_test"])
