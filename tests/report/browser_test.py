"""report's page in a headless Chromium: on a phone and a desk, in light and dark, without a word in the console.

Pictures of all pages go to the test's outputs.
"""
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
  svg.querySelectorAll(".series use, .dots use").forEach(function (dot) {
    var at = dot.getBoundingClientRect();
    if (at.left < box.left || at.right > box.right) ++outside;
  });
  return { name: svg.parentNode.querySelector("h3").textContent, points: points, outside: outside,
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
        self.assertEqual(len(names), 9)

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
            self.assertEqual(page.evaluate("document.scripts.length"), 1)
        marked = self.page("late.h5").evaluate("document.body.textContent")
        self.assertIn("from draw 50 on", marked)

    def test_a_long_run_with_extremes(self):
        self.write("run", "run.h5", 200000)
        self.check_all_ways("long_run", "run.h5")
        self.assertLess(len(self.bytes("page.html")), 1 << 20)
        page = self.open()
        self.assertGreater(page.evaluate("document.querySelectorAll('.band polygon').length"), 5)
        text = page.evaluate("document.body.textContent")
        self.assertRegex(text, r"1 of 200,000 values above .* is not shown: 250 ms at draw 0")
        clipped = "document.querySelectorAll('svg.chart')[1].querySelectorAll('.marks use').length"
        self.assertEqual(page.evaluate(clipped), 1)

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
            self.assertIn("messages 1 ms, 100.0 % of it while working", rank["text"])

    def test_values_under_the_pointer(self):
        self.write("run", "run.h5")
        page = self.page("run.h5")
        # The middle of the chart of dt, draw 49.5: one of the two beside it.
        page.evaluate("document.querySelectorAll('svg.chart')[1].scrollIntoView({block: 'center'})")
        box = page.evaluate("""(function () {
            var chart = document.querySelectorAll("svg.chart")[1], box = chart.getBoundingClientRect(), data = chart.dataset;
            var scale = box.width / chart.viewBox.baseVal.width;
            return [box.left + (Number(data.left) + Number(data.width) / 2) * scale,
                    box.top + (Number(data.top) + Number(data.height) / 2) * scale]; })()""")
        page.move_to(*box)
        readout = page.evaluate("Array.from(document.querySelectorAll('.readout')[1].children, e => e.textContent)")
        draw, value = re.fullmatch(r"draw (\d+) ([\d.]+) ms", " ".join(readout)).groups()
        self.assertIn(int(draw), (49, 50))
        # The drawing has steps of 0.01 in 172, over less than 1 ms.
        self.assertAlmostEqual(float(value), 1 + 0.1 * (int(draw) % 10), delta=0.001)
        self.assertEqual(page.evaluate("document.querySelectorAll('.readout')[0].textContent"), "")
        self.assertEqual(page.problems, [])

    def test_without_its_script(self):
        self.write_trace()
        self.write("run", "run.h5")
        self.page("run.h5")
        with_script, without = self.open(), self.open(script=False)
        for page in (with_script, without):
            self.check(page, "script")
        text = "document.querySelector('main').innerText"
        self.assertEqual(without.evaluate(text), with_script.evaluate(text))


if __name__ == "__main__":
    unittest.main(argv=["browser_test"])
