#include "tools/report_parts/page.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "data/hdf5/atomic_file.h"
#include "tools/report_parts/page_blocks.h"
#include "tools/report_parts/page_style.h"
#include "tools/report_parts/timeline_chart.h"
#include "tools/report_parts/report_tables.h"
#include "tools/report_parts/run_plots.h"

namespace plait::report {
namespace {

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
    absl::StrAppend(&html, "<span><i class=\"swatch c", i % data::kPageColourCount, "\"></i>", base::EscapeHtml(runs[i].label),
                    "</span> ");
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
  const auto charts = data::RenderPageCharts(
      static_cast<int>(drawn.size()), [&](int i) -> absl::StatusOr<data::Plot> {
        PLAIT_ASSIGN_OR_RETURN(data::Plot plot, PlotOf(runs, drawn[i]));
        plot.title = ChartTitle(runs, drawn[i]);
        return plot;
      });
  if (charts.ok()) {
    html += "<div class=\"charts\">";
    for (std::size_t i = 0; i < drawn.size(); ++i) html += Figure(drawn[i], About(runs, drawn[i]), (*charts)[i]);
    html += "</div>";
  } else {
    html += foot(absl::StrCat("No curves: ", charts.status().message(), "."));
  }
  if (!without.empty()) html += foot(absl::StrCat("Without a finite value: ", absl::StrJoin(without, ", "), "."));
  return html;
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
    absl::StrAppend(&html, "<details><summary>Settings", runs.size() > 1 ? " of " + base::EscapeHtml(run.label) : "",
                    " (", settings.size(), ")</summary>", TableHtml(table, runs), "</details>");
  }
  return html;
}

std::string NoteList(absl::Span<const RunNumbers> runs) {
  std::string items;
  for (const std::string& note : Notes(runs)) absl::StrAppend(&items, "<li>", base::EscapeHtml(note), "</li>");
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
  parts.push_back(
      absl::StrCat(base::FormatCount(run.draws), " draws",
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
