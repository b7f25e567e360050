#include "tools/report_parts/page.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/quantity.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "data/hdf5/atomic_file.h"
#include "data/plot/plot.h"
#include "tools/report_parts/curve_data.h"
#include "tools/report_parts/page_assets.h"
#include "tools/report_parts/page_blocks.h"
#include "tools/report_parts/report_tables.h"
#include "tools/report_parts/run_plots.h"
#include "tools/report_parts/time_units.h"
#include "tools/report_parts/timeline_chart.h"

namespace plait::report {
namespace {

constexpr int kMostRanks = 64;
constexpr absl::string_view kPageStart = "<!DOCTYPE html";

struct Section {
  std::string id, title, body;
};

std::string Foot(absl::string_view text) {
  return absl::StrCat("<p class=\"foot\">", base::EscapeHtml(text), "</p>");
}

// The form that selects axis, smoothing, scale and runs; hidden without the script.
std::string Controls(absl::Span<const RunNumbers> runs) {
  std::string html =
      "<form class=\"controls\" hidden><label>x axis <select name=\"x\"><option>step</option>"
      "<option>tokens</option><option>time</option></select></label>"
      "<label>smoothing <input type=\"range\" name=\"smoothing\" min=\"0\" max=\"0.99\" step=\"0.01\" "
      "value=\"0\"><output></output></label>"
      "<label><input type=\"checkbox\" name=\"log\">log scale</label>";
  if (runs.size() < 2) return html + "</form>";
  html += "<fieldset class=\"runs\"><legend>runs</legend>";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    absl::StrAppend(&html, "<label><input type=\"checkbox\" checked><i class=\"swatch c",
                    i % kPageColourCount, "\"></i>", base::EscapeHtml(runs[i].label), "</label>");
  }
  return html + "</fieldset></form>";
}

// Text alternative of a chart, in its units: "dt; run.h5: median 1.5 ms, from 1 ms to 250 ms".
std::string ChartTitle(absl::Span<const RunNumbers> runs, const std::string& metric) {
  std::string title = metric;
  const MetricNumbers* first = FirstNumbers(runs, metric);
  for (const RunNumbers& run : runs) {
    const MetricNumbers* numbers = run.Find(metric);
    if (numbers == nullptr || FactorBetween(numbers->metric, first->metric) == 0) continue;
    const auto shown = [&](double value) { return MetricTextIn(first->metric, value, *numbers); };
    absl::StrAppend(&title, "; ", run.label, ": median ", shown(numbers->summary.median), ", from ",
                    shown(numbers->summary.min), " to ", shown(numbers->summary.max));
  }
  return title;
}

// "forward and loss, mean over ranks [K]; without b.h5, in C", with the words of the run whose units the chart has.
std::string About(absl::Span<const RunNumbers> runs, const std::string& metric) {
  const data::TableMetric& words = FirstNumbers(runs, metric)->metric;
  std::string about = words.long_name;
  if (!words.statistic.empty()) absl::StrAppend(&about, about.empty() ? "" : ", ", words.statistic);
  if (!words.units.empty() && words.units != "1" && words.units != "s" && words.units != "bytes") {
    absl::StrAppend(&about, about.empty() ? "" : " ", "[", words.units, "]");
  }
  for (const RunNumbers& run : runs) {
    const MetricNumbers* numbers = run.Find(metric);
    if (numbers == nullptr || FactorBetween(numbers->metric, words) != 0) continue;
    const std::string& units = numbers->metric.units;
    absl::StrAppend(&about, about.empty() ? "" : "; ", "without ", run.label,
                    units.empty() ? ", which names no unit" : ", in " + units);
  }
  return about;
}

// A chart with its description; the script shows values in the `readout` element.
std::string Figure(const std::string& attributes, const std::string& title, const std::string& about,
                   const std::string& picture, absl::Span<const std::string> notes = {}) {
  std::string caption;
  for (const std::string& note : notes) {
    absl::StrAppend(&caption, "<span>", base::EscapeHtml(note), ".</span> ");
  }
  return absl::StrCat("<figure class=\"card\"", attributes, "><h3>", base::EscapeHtml(title),
                      "</h3><div class=\"line\"><p class=\"about\">", base::EscapeHtml(about),
                      "</p><p class=\"readout\" aria-hidden=\"true\"></p></div>", picture, "<figcaption>",
                      caption, "</figcaption></figure>\n");
}

// "comm_bytes_dp (3.195 MiB)"; of several runs, all values.
std::string Constant(absl::Span<const RunNumbers> runs, const std::string& metric) {
  std::vector<std::string> values;
  const data::TableMetric& first = FirstNumbers(runs, metric)->metric;
  for (const RunNumbers& run : runs) {
    const MetricNumbers* numbers = run.Find(metric);
    if (numbers == nullptr || numbers->summary.finite == 0) continue;
    const std::string value = MetricTextIn(first, numbers->summary.min, *numbers);
    if (values.empty() || values.back() != value) values.push_back(value);
  }
  return absl::StrCat(metric, " (", absl::StrJoin(values, ", "), ")");
}

std::string Curves(absl::Span<const RunNumbers> runs) {
  const ChartedMetrics metrics = ChartedOf(runs);
  const absl::StatusOr<std::string> numbers = CurveJson(runs);
  if (!numbers.ok()) return Foot(absl::StrCat("No curves: ", numbers.status().message(), "."));
  std::string html = absl::StrCat("<noscript>", Foot("Curves need JavaScript; all else does not."),
                                  "</noscript>", Controls(runs), "<div class=\"charts\">");
  for (std::size_t i = 0; i < metrics.drawn.size(); ++i) {
    const std::string& metric = metrics.drawn[i];
    html += Figure(absl::StrCat(" data-metric=\"", i, "\""), metric, About(runs, metric),
                   absl::StrCat("<div class=\"plot\" data-label=\"",
                                base::EscapeHtml(ChartTitle(runs, metric)), "\"></div>"));
  }
  html += "</div>";
  std::vector<std::string> constants;
  for (const std::string& metric : metrics.constant) constants.push_back(Constant(runs, metric));
  if (!constants.empty()) html += Foot(absl::StrCat("Constant: ", absl::StrJoin(constants, "; "), "."));
  if (!metrics.without_values.empty())
    html += Foot(absl::StrCat("Without a finite value: ", absl::StrJoin(metrics.without_values, ", "), "."));
  return absl::StrCat(html, "<script type=\"application/json\" id=\"curve-data\">", *numbers, "</script>");
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
  if (!charts.ok()) return Foot(absl::StrCat("No heat maps: ", charts.status().message(), "."));
  std::string figures;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const auto& [run, metric] = drawn[i];
    figures += Figure("", runs.size() > 1 ? absl::StrCat(run->label, ": ", metric->name) : metric->name,
                      About(*metric), (*charts)[i].svg, (*charts)[i].notes);
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

// Settings have a table of their own.
ReportTable RunsWithoutSettings(absl::Span<const RunNumbers> runs) {
  ReportTable table = RunTable(runs);
  table.rows.erase(std::remove_if(table.rows.begin(), table.rows.end(),
                                  [](const auto& row) { return row[0] == "settings"; }),
                   table.rows.end());
  return table;
}

std::string Environment(absl::Span<const RunNumbers> runs) {
  std::string html = TableHtml(RunsWithoutSettings(runs), runs, NarrowTable::kStacks);
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

std::string NoteList(absl::Span<const RunNumbers> runs, std::vector<std::string> notes) {
  const std::vector<std::string> of_runs = Notes(runs);
  notes.insert(notes.end(), of_runs.begin(), of_runs.end());
  std::string items;
  for (const std::string& note : notes) absl::StrAppend(&items, "<li>", base::EscapeHtml(note), "</li>");
  return items.empty() ? "" : absl::StrCat("<ul class=\"notes\">", items, "</ul>");
}

std::vector<Section> Sections(absl::Span<const RunNumbers> runs) {
  const auto table = [&](const ReportTable& table, NarrowTable narrow = NarrowTable::kScrolls) {
    return table.rows.empty() ? std::string() : TableHtml(table, runs, narrow);
  };
  std::vector<Section> sections;
  const auto add = [&](const char* id, const char* title, std::string body) {
    if (!body.empty()) sections.push_back({id, title, std::move(body)});
  };
  add("changes", "Changed settings", runs.size() > 1 ? table(ChangeTable(runs), NarrowTable::kStacks) : "");
  add("comparison", "Comparison", table(ComparisonTable(runs), NarrowTable::kStacks));
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
  return labels.empty() ? "report" : absl::StrJoin(labels, ", ");
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

std::string Header(absl::Span<const RunNumbers> runs, const std::vector<Section>& sections,
                   const std::vector<std::string>& notes) {
  std::string html = absl::StrCat("<header><h1>", base::EscapeHtml(Title(runs)), "</h1>");
  for (const RunNumbers& run : runs) {
    const std::string who = runs.size() > 1 ? run.label + ": " : "";
    absl::StrAppend(&html, "<p class=\"lead\">", base::EscapeHtml(who + Lead(run)), "</p>");
  }
  html += "<nav aria-label=\"Sections\"><ul>";
  for (const Section& section : sections) {
    absl::StrAppend(&html, "<li><a href=\"#", section.id, "\">", section.title, "</a></li>");
  }
  return absl::StrCat(html, "</ul></nav>", NoteList(runs, notes), "</header>");
}

}  // namespace

std::string PageHtml(absl::Span<const RunNumbers> runs, const PageOptions& options) {
  const std::vector<Section> sections = Sections(runs);
  // An icon of its own keeps browsers from asking for one.
  // Nothing is loaded from anywhere, whatever a history may hold.
  std::string html = absl::StrCat(
      kPageStart, ">\n<html lang=\"en\"", options.follows ? " data-follows" : "",
      ">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; "
      "form-action 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:",
      options.follows ? "; connect-src 'self'" : "",
      "\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>",
      base::EscapeHtml(Title(runs)), "</title>\n<style>", kPageStyle, "</style>\n</head>\n<body>\n",
      Header(runs, sections, options.notes), "<main>", Tiles(runs));
  for (const Section& section : sections) {
    absl::StrAppend(&html, "<section aria-labelledby=\"", section.id, "\"><h2 id=\"", section.id, "\">",
                    section.title, "</h2>", section.body, "</section>\n");
  }
  return absl::StrCat(html, "</main>\n<footer>Made by report of Plait.</footer>\n<script>", kPageScript,
                      "</script>\n</body>\n</html>\n");
}

bool MayBecomePage(const std::string& path, const std::vector<std::string>& inputs) {
  std::error_code ignored;
  for (const std::string& input : inputs) {
    if (std::filesystem::equivalent(input, path, ignored)) return false;
  }
  if (!std::filesystem::is_regular_file(path, ignored)) return true;
  std::ifstream file(path, std::ios::binary);
  std::string start(kPageStart.size(), '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  return start == kPageStart || (file.eof() && file.gcount() == 0);
}

absl::Status WritePage(absl::Span<const RunNumbers> runs, const std::string& path) {
  return data::WriteWholeFile(path, PageHtml(runs));
}

}  // namespace plait::report
