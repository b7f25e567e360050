#include "tools/report_parts/page.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "data/hdf5/atomic_file.h"
#include "tools/report_parts/page_blocks.h"
#include "tools/report_parts/report_tables.h"
#include "tools/report_parts/run_plots.h"
#include "tools/report_parts/timeline_chart.h"

namespace plait::report {
namespace {

// Light and dark by prefers-color-scheme. Contrast is at least 4.5 for texts, 3 for curves and bars
// (WCAG 2.1, AA).
absl::string_view PageStyle() {
  return R"css(
:root {
  color-scheme: light dark;
  --page: #f4f6f8; --card: #ffffff; --text: #17202b; --soft: #53606e; --line: #d8dee5; --grid: #e6eaef;
  --link: #0b5cad; --head: #eef1f5;
  --c0: #0b6bcb; --c1: #c8500a; --c2: #0b7d6c; --c3: #8536c6; --c4: #97690a; --c5: #c2246b;
  --forward: #1f6fc2; --backward: #6a49c8; --optimizer: #0e7561; --messages: #b04c08; --waiting: #a11c3a; --other: #5f6973;
  --bar-text: #ffffff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f141a; --card: #171e26; --text: #e4e9ef; --soft: #9dabba; --line: #2d3843; --grid: #252f39;
    --link: #7cbcff; --head: #1d2630;
    --c0: #64b0ff; --c1: #ff9b5c; --c2: #4ccfb5; --c3: #c59bff; --c4: #e8bd4a; --c5: #ff86b8;
    --forward: #6db3f8; --backward: #b39dfa; --optimizer: #52cdb1; --messages: #f5a063; --waiting: #ff8fa3; --other: #93a0ae;
    --bar-text: #0f141a;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", "Liberation Sans", sans-serif;
}
main, header { max-width: 1360px; margin: 0 auto; padding: 0 16px; }
header { padding-top: 20px; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 30px 0 10px; }
h3 { font-size: 0.95rem; margin: 0; overflow-wrap: anywhere; }
p { margin: 0; }
a { color: var(--link); }
nav ul { display: flex; flex-wrap: wrap; gap: 4px 16px; list-style: none; margin: 12px 0 0; padding: 0; }
nav a { display: inline-block; padding: 4px 0; }
.lead, .about, figcaption, .foot, .lane-name { color: var(--soft); }
.about, figcaption, .foot, .readout, .legend { font-size: 0.82rem; }
.line { display: grid; }
.line > * { grid-area: 1 / 1; min-height: 1.5em; overflow-wrap: anywhere; }
.reading .about { visibility: hidden; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px; margin: 0; }
.tiles { display: grid; gap: 12px; grid-template-columns: repeat(auto-fill, minmax(min(100%, 160px), 1fr)); margin-top: 16px; }
.tile h3 { color: var(--soft); font-weight: 500; font-size: 0.82rem; }
.tile p { overflow-wrap: anywhere; }
.tile b { font-size: 1.3rem; font-weight: 650; font-variant-numeric: tabular-nums; margin-right: 6px; }
.tile small { color: var(--soft); font-size: 0.82rem; display: inline-block; }
.charts { display: grid; gap: 12px; grid-template-columns: repeat(auto-fill, minmax(min(100%, 380px), 1fr)); }
.charts > * { min-width: 0; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; margin: 6px 0 10px; overflow-wrap: anywhere; }
.swatch, .dot { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; vertical-align: -0.5px; }
.dot.c0, .swatch.c0 { background: var(--c0); } .dot.c1, .swatch.c1 { background: var(--c1); }
.dot.c2, .swatch.c2 { background: var(--c2); } .dot.c3, .swatch.c3 { background: var(--c3); }
.dot.c4, .swatch.c4 { background: var(--c4); } .dot.c5, .swatch.c5 { background: var(--c5); }
svg.chart, svg.heat { display: block; width: 100%; height: auto; touch-action: pan-y; }
svg text { font-family: system-ui, "DejaVu Sans", sans-serif; font-size: 11px; font-variant-numeric: tabular-nums; }
.cursor { stroke: var(--soft); stroke-width: 1; visibility: hidden; }
.readout { font-variant-numeric: tabular-nums; }
.readout span { margin-right: 12px; white-space: nowrap; }
figcaption span { display: block; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.scroll:focus-visible, a:focus-visible, summary:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: 0.88rem; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 12px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--grid); }
tbody tr:last-child > * { border-bottom: 0; }
thead th, thead td { background: var(--head); color: var(--soft); font-weight: 600; }
tbody th, thead > tr > :first-child { position: sticky; left: 0; }
tbody th { background: var(--card); }
th.text, td.text { text-align: left; }
td.long { white-space: normal; overflow-wrap: anywhere; min-width: 180px; max-width: 700px; }
tbody th { font-weight: 600; }
.foot { margin-top: 6px; }
.notes { margin: 12px 0 0; padding-left: 20px; overflow-wrap: anywhere; }
details { margin-top: 12px; }
summary { cursor: pointer; padding: 4px 0; }
.timeline .rank { margin-top: 10px; }
.rank-name, .lane-name { font-size: 0.82rem; overflow-wrap: anywhere; }
.lane { position: relative; background: var(--head); border-radius: 3px; margin-top: 2px; overflow: hidden; }
.bar {
  position: absolute; height: 17px; min-width: 1px; padding: 0; overflow: hidden; white-space: nowrap;
  font-size: 11px; line-height: 17px; color: var(--bar-text); text-align: center; border-radius: 2px;
  box-shadow: inset 0 0 0 0.5px var(--card);
}
.forward { background: var(--forward); } .backward { background: var(--backward); }
.optimizer { background: var(--optimizer); } .messages { background: var(--messages); }
.waiting { background: var(--waiting); } .other { background: var(--other); }
.time-axis { position: relative; height: 22px; margin-top: 4px; font-size: 11px; color: var(--soft); border-top: 1px solid var(--line); }
.time-axis span { position: absolute; white-space: nowrap; padding-left: 3px; border-left: 1px solid var(--line); }
.time-axis span.late { transform: translateX(-100%); border-left: 0; border-right: 1px solid var(--line); padding: 0 3px 0 0; }
footer { max-width: 1360px; margin: 24px auto 32px; padding: 0 16px; color: var(--soft); font-size: 0.82rem; }
@media print { body { background: #ffffff; } .scroll { overflow: visible; } }
)css";
}

// Shows the values under the pointer below a chart. The page is complete without it.
absl::string_view PageScript() {
  return R"js(
"use strict";
(function () {
  var units = {
    s: [[1, " s"], [1e-3, " ms"], [1e-6, " µs"], [1e-9, " ns"]],
    bytes: [[1099511627776, " TiB"], [1073741824, " GiB"], [1048576, " MiB"], [1024, " KiB"], [1, " B"]]
  };
  function shown(value, unit) {
    var list = units[unit] || [[1, ""]];
    for (var i = 0; i < list.length; ++i) {
      if (Math.abs(value) >= list[i][0] || i + 1 === list.length) {
        return String(Number((value / list[i][0]).toPrecision(4))) + list[i][1];
      }
    }
  }
  function points(series) {
    var all = [];
    series.querySelectorAll("path").forEach(function (line) {
      line.getAttribute("d").match(/[-\d.]+,[-\d.]+/g).forEach(function (pair) {
        var at = pair.split(",");
        all.push([Number(at[0]), Number(at[1])]);
      });
    });
    return all;
  }
  function nearest(all, x) {
    var best = null;
    all.forEach(function (point) {
      if (best === null || Math.abs(point[0] - x) < Math.abs(best[0] - x)) best = point;
    });
    return best;
  }
  document.querySelectorAll("svg.chart").forEach(function (svg) {
    var data = svg.dataset, left = Number(data.left), width = Number(data.width);
    var top = Number(data.top), height = Number(data.height);
    var x0 = Number(data.x0), x1 = Number(data.x1), y0 = Number(data.y0), y1 = Number(data.y1);
    var figure = svg.parentNode, readout = figure.querySelector(".readout"), cursor = svg.querySelector(".cursor"), curves = null;
    function show(event) {
      if (curves === null) {
        curves = Array.prototype.map.call(svg.querySelectorAll(".series"), function (series) {
          return { name: series.dataset.name, part: Number(series.dataset.valuesPerPoint), points: points(series),
                   colour: series.getAttribute("class").split(" ")[1] };
        });
      }
      var box = svg.getBoundingClientRect();
      var x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      readout.textContent = "";
      figure.classList.add("reading");
      var place = null;
      curves.forEach(function (curve) {
        var point = nearest(curve.points, x);
        if (point === null) return;
        if (place === null) {
          place = point[0];
          var draw = document.createElement("span");
          var number = Math.round(x0 + (place - left) / width * (x1 - x0));
          draw.textContent = (curve.part > 1 ? "around draw " : "draw ") + number.toLocaleString("en");
          readout.appendChild(draw);
        }
        var entry = document.createElement("span"), dot = document.createElement("i");
        dot.className = "dot " + curve.colour;
        entry.appendChild(dot);
        entry.appendChild(document.createTextNode(shown(y0 + (1 - (point[1] - top) / height) * (y1 - y0), data.unit)));
        entry.title = curve.name;
        readout.appendChild(entry);
      });
      if (place !== null) {
        cursor.setAttribute("x1", place);
        cursor.setAttribute("x2", place);
        cursor.style.visibility = "visible";
      }
    }
    svg.addEventListener("pointermove", show);
    svg.addEventListener("pointerdown", show);
    svg.addEventListener("pointerleave", function () {
      readout.textContent = "";
      figure.classList.remove("reading");
      cursor.style.visibility = "hidden";
    });
  });
})();
)js";
}

constexpr int kMostRanks = 64;

struct Section {
  std::string id, title, body;
};

// The main ones first, then the others in the order of the files.
std::vector<std::string> Ordered(absl::Span<const RunNumbers> runs) {
  std::vector<std::string> names = MainMetrics(runs);
  for (const std::string& name : MetricNames(runs)) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string RunLegend(absl::Span<const RunNumbers> runs) {
  if (runs.size() < 2) return "";
  std::string html = "<p class=\"legend\">";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    absl::StrAppend(&html, "<span><i class=\"swatch c", i % data::kPageColourCount, "\"></i>",
                    base::EscapeHtml(runs[i].label), "</span> ");
  }
  return html + "</p>";
}

// For those who do not see the chart: "dt by draw; run.h5: median 1.5 ms, from 1 ms to 250 ms".
std::string ChartTitle(absl::Span<const RunNumbers> runs, const std::string& metric) {
  std::string title = metric + " by draw";
  for (const RunNumbers& run : runs) {
    const MetricNumbers* numbers = run.Find(metric);
    if (numbers == nullptr) continue;
    const auto shown = [&](double value) { return base::FormatQuantity(value, numbers->metric.units); };
    absl::StrAppend(&title, "; ", run.label, ": median ", shown(numbers->summary.median), ", from ",
                    shown(numbers->summary.min), " to ", shown(numbers->summary.max));
  }
  return title;
}

// "forward and loss, mean over ranks [K]", from the first run that has the metric.
std::string About(absl::Span<const RunNumbers> runs, const std::string& metric) {
  for (const RunNumbers& run : runs) {
    const MetricNumbers* numbers = run.Find(metric);
    if (numbers == nullptr) continue;
    const data::TableMetric& words = numbers->metric;
    std::string about = words.long_name;
    if (!words.statistic.empty()) absl::StrAppend(&about, about.empty() ? "" : ", ", words.statistic);
    if (!words.units.empty() && words.units != "1" && words.units != "s" && words.units != "bytes") {
      absl::StrAppend(&about, about.empty() ? "" : " ", "[", words.units, "]");
    }
    return about;
  }
  return "";
}

// The script shows values in the line of the description.
std::string Figure(const std::string& metric, const std::string& about, const data::PageChart& chart) {
  std::string notes;
  for (const std::string& note : chart.notes) {
    absl::StrAppend(&notes, "<span>", base::EscapeHtml(note), ".</span> ");
  }
  return absl::StrCat("<figure class=\"card\"><h3>", base::EscapeHtml(metric),
                      "</h3><div class=\"line\"><p class=\"about\">", base::EscapeHtml(about),
                      "</p><p class=\"readout\" aria-hidden=\"true\"></p></div>", chart.svg, "<figcaption>",
                      notes, "</figcaption></figure>\n");
}

std::string Curves(absl::Span<const RunNumbers> runs) {
  std::vector<std::string> drawn, without;
  for (const std::string& name : Ordered(runs)) {
    const bool has_points = std::any_of(runs.begin(), runs.end(), [&](const RunNumbers& run) {
      const MetricNumbers* numbers = run.Find(name);
      return numbers != nullptr && numbers->summary.finite > 0;
    });
    (has_points ? drawn : without).push_back(name);
  }
  const auto foot = [](absl::string_view text) {
    return absl::StrCat("<p class=\"foot\">", base::EscapeHtml(text), "</p>");
  };
  std::string html = RunLegend(runs);
  const auto charts =
      data::RenderPageCharts(static_cast<int>(drawn.size()), [&](int i) -> absl::StatusOr<data::Plot> {
        PLAIT_ASSIGN_OR_RETURN(data::Plot plot, PlotOf(runs, drawn[i]));
        plot.title = ChartTitle(runs, drawn[i]);
        return plot;
      });
  if (charts.ok()) {
    html += "<div class=\"charts\">";
    for (std::size_t i = 0; i < drawn.size(); ++i)
      html += Figure(drawn[i], About(runs, drawn[i]), (*charts)[i]);
    html += "</div>";
  } else {
    html += foot(absl::StrCat("No curves: ", charts.status().message(), "."));
  }
  if (!without.empty())
    html += foot(absl::StrCat("Without a finite value: ", absl::StrJoin(without, ", "), "."));
  return html;
}

// "rows of an expert; vertical: expert".
std::string About(const data::TableMetric& metric) {
  return absl::StrCat(metric.long_name, metric.long_name.empty() ? "" : "; ",
                      "vertical: ", metric.dimension.empty() ? "entry" : metric.dimension);
}

std::string HeatMaps(absl::Span<const RunNumbers> runs) {
  std::vector<std::pair<const RunNumbers*, const data::TableMetric*>> drawn;
  for (const RunNumbers& run : runs) {
    for (const data::TableMetric& metric : run.heat_maps) drawn.emplace_back(&run, &metric);
  }
  const auto charts = data::RenderPageHeatMaps(
      static_cast<int>(drawn.size()), [&](int i) { return HeatMapOf(*drawn[i].first, *drawn[i].second); });
  if (!charts.ok()) return "";  // as the curves say
  std::string figures;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const auto& [run, metric] = drawn[i];
    figures += Figure(runs.size() > 1 ? absl::StrCat(run->label, ": ", metric->name) : metric->name,
                      About(*metric), (*charts)[i]);
  }
  return figures.empty() ? "" : absl::StrCat("<div class=\"charts\">", figures, "</div>");
}

std::string Timelines(absl::Span<const RunNumbers> runs) {
  std::string html;
  for (const RunNumbers& run : runs) {
    if (!run.timeline.has_value()) continue;
    if (runs.size() > 1) absl::StrAppend(&html, "<p class=\"legend\">", base::EscapeHtml(run.label), "</p>");
    html += TimelineChart(*run.timeline);
  }
  return html;
}

// The line of settings has a table of its own.
ReportTable RunsWithoutSettings(absl::Span<const RunNumbers> runs) {
  ReportTable table = RunTable(runs);
  table.rows.erase(std::remove_if(table.rows.begin(), table.rows.end(),
                                  [](const auto& row) { return row[0] == "settings"; }),
                   table.rows.end());
  return table;
}

std::string Environment(absl::Span<const RunNumbers> runs) {
  std::string html = TableHtml(RunsWithoutSettings(runs), runs);
  for (const RunNumbers& run : runs) {
    const NamedTexts settings = data::ParseSettings(run.Attribute("settings"));
    if (settings.empty()) continue;
    ReportTable table = {
        .title = absl::StrCat("Settings of ", run.label), .header = {"setting", "value"}, .rows = {}};
    table.last_texts = 1;
    for (const auto& [name, value] : settings) table.rows.push_back({name, value});
    absl::StrAppend(&html, "<details><summary>Settings",
                    runs.size() > 1 ? " of " + base::EscapeHtml(run.label) : "", " (", settings.size(),
                    ")</summary>", TableHtml(table, runs), "</details>");
  }
  return html;
}

std::string NoteList(absl::Span<const RunNumbers> runs) {
  std::string items;
  for (const std::string& note : Notes(runs))
    absl::StrAppend(&items, "<li>", base::EscapeHtml(note), "</li>");
  return items.empty() ? "" : absl::StrCat("<ul class=\"notes\">", items, "</ul>");
}

std::vector<Section> Sections(absl::Span<const RunNumbers> runs) {
  const auto table = [&](const ReportTable& table) {
    return table.rows.empty() ? std::string() : TableHtml(table, runs);
  };
  std::vector<Section> sections;
  const auto add = [&](const char* id, const char* title, std::string body) {
    if (!body.empty()) sections.push_back({id, title, std::move(body)});
  };
  add("changes", "Changed settings", runs.size() > 1 ? table(ChangeTable(runs)) : "");
  add("comparison", "Comparison", table(ComparisonTable(runs)));
  add("curves", "Curves", Curves(runs));
  add("experts", "Load of experts", HeatMaps(runs));
  add("timeline", "A step, rank by rank", Timelines(runs));
  add("metrics", "Metrics", table(MetricTable(runs)));
  add("throughput", "Throughput", table(RateTable(runs)));
  add("messages", "Messages by axis", table(TrafficTable(runs)));
  add("ranks", "Ranks", table(RankTable(runs, kMostRanks)));
  add("environment", "Environment", Environment(runs));
  return sections;
}

std::string Title(absl::Span<const RunNumbers> runs) {
  std::vector<std::string> labels;
  for (const RunNumbers& run : runs) labels.push_back(run.label);
  return absl::StrJoin(labels, ", ");
}

// "test_dist on n1, 8 ranks, 1,000 draws, started ..."
std::string Lead(const RunNumbers& run) {
  std::vector<std::string> parts;
  if (const std::string program = run.Attribute("program"); !program.empty()) parts.push_back(program);
  if (const std::string host = run.Attribute("host"); !host.empty()) parts.push_back("on " + host);
  if (const std::string ranks = run.Attribute("ranks"); !ranks.empty()) {
    parts.push_back(absl::StrCat(ranks, ranks == "1" ? " rank" : " ranks"));
  }
  parts.push_back(absl::StrCat(
      base::FormatCount(run.draws), " draws",
      run.skipped > 0 ? absl::StrCat(" (the first ", base::FormatCount(run.skipped), " left out)") : ""));
  if (const std::string started = run.Attribute("started"); !started.empty())
    parts.push_back("started " + started);
  return absl::StrJoin(parts, " · ");
}

std::string Header(absl::Span<const RunNumbers> runs, const std::vector<Section>& sections) {
  std::string html = absl::StrCat("<header><h1>", base::EscapeHtml(Title(runs)), "</h1>");
  for (const RunNumbers& run : runs) {
    const std::string who = runs.size() > 1 ? run.label + ": " : "";
    absl::StrAppend(&html, "<p class=\"lead\">", base::EscapeHtml(who + Lead(run)), "</p>");
  }
  html += "<nav aria-label=\"Sections\"><ul>";
  for (const Section& section : sections) {
    absl::StrAppend(&html, "<li><a href=\"#", section.id, "\">", section.title, "</a></li>");
  }
  return absl::StrCat(html, "</ul></nav>", NoteList(runs), "</header>");
}

}  // namespace

std::string PageHtml(absl::Span<const RunNumbers> runs) {
  const std::vector<Section> sections = Sections(runs);
  // An icon of its own keeps browsers from asking for one.
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>",
      base::EscapeHtml(Title(runs)), "</title>\n<style>", PageStyle(), "</style>\n</head>\n<body>\n",
      Header(runs, sections), "<main>", Tiles(runs));
  for (const Section& section : sections) {
    absl::StrAppend(&html, "<section aria-labelledby=\"", section.id, "\"><h2 id=\"", section.id, "\">",
                    section.title, "</h2>", section.body, "</section>\n");
  }
  return absl::StrCat(html, "</main>\n<footer>Made by report of Plait.</footer>\n<script>", PageScript(),
                      "</script>\n</body>\n</html>\n");
}

absl::Status WritePage(absl::Span<const RunNumbers> runs, const std::string& path) {
  return data::WriteWholeFile(path, PageHtml(runs));
}

}  // namespace plait::report
