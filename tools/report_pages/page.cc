#include "tools/report_pages/page.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "data/hdf5/atomic_file.h"
#include "tools/report_numbers/metric_names.h"
#include "tools/report_pages/html_text.h"
#include "tools/report_pages/line_chart.h"
#include "tools/report_pages/page_style.h"
#include "tools/report_pages/table_html.h"
#include "tools/report_pages/tiles.h"
#include "tools/report_pages/timeline_chart.h"
#include "tools/report_text/number_text.h"
#include "tools/report_text/report_tables.h"

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
    absl::StrAppend(&html, "<span><i class=\"swatch c", i % kRunColours, "\"></i>", Html(runs[i].label),
                    "</span> ");
  }
  return html + "</p>";
}

std::string Curves(absl::Span<const RunNumbers> runs) {
  std::string charts, without;
  for (const std::string& name : Ordered(runs)) {
    const bool has_points = std::any_of(runs.begin(), runs.end(), [&](const RunNumbers& run) {
      const MetricNumbers* numbers = run.Find(name);
      return numbers != nullptr && numbers->summary.finite > 0;
    });
    if (has_points) {
      charts += LineChart(runs, name);
    } else {
      absl::StrAppend(&without, without.empty() ? "" : ", ", name);
    }
  }
  if (!without.empty())
    without = absl::StrCat("<p class=\"foot\">Without a finite value: ", Html(without), ".</p>");
  return absl::StrCat(RunLegend(runs), "<div class=\"charts\">", charts, "</div>", without);
}

std::string Timelines(absl::Span<const RunNumbers> runs) {
  std::string html;
  for (const RunNumbers& run : runs) {
    if (!run.timeline.has_value()) continue;
    if (runs.size() > 1) absl::StrAppend(&html, "<p class=\"legend\">", Html(run.label), "</p>");
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
    std::string line;
    for (const auto& [name, value] : run.attributes) {
      if (name == "settings") line = value;
    }
    const NamedTexts settings = data::ParseSettings(line);
    if (settings.empty()) continue;
    ReportTable table = {
        .title = absl::StrCat("Settings of ", run.label), .header = {"setting", "value"}, .rows = {}};
    table.last_texts = 1;
    for (const auto& [name, value] : settings) table.rows.push_back({name, value});
    absl::StrAppend(&html, "<details><summary>Settings", runs.size() > 1 ? " of " + Html(run.label) : "",
                    " (", settings.size(), ")</summary>", TableHtml(table, runs), "</details>");
  }
  return html;
}

std::string NoteList(absl::Span<const RunNumbers> runs) {
  std::string items;
  for (const std::string& note : Notes(runs)) absl::StrAppend(&items, "<li>", Html(note), "</li>");
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
  const auto attribute = [&](const char* name) -> std::string {
    for (const auto& [known, value] : run.attributes) {
      if (known == name) return value;
    }
    return "";
  };
  if (const std::string program = attribute("program"); !program.empty()) parts.push_back(program);
  if (const std::string host = attribute("host"); !host.empty()) parts.push_back("on " + host);
  if (const std::string ranks = attribute("ranks"); !ranks.empty()) {
    parts.push_back(absl::StrCat(ranks, ranks == "1" ? " rank" : " ranks"));
  }
  parts.push_back(
      absl::StrCat(Count(run.draws), " draws",
                   run.skipped > 0 ? absl::StrCat(" (the first ", Count(run.skipped), " left out)") : ""));
  if (const std::string started = attribute("started"); !started.empty())
    parts.push_back("started " + started);
  return absl::StrJoin(parts, " · ");
}

std::string Header(absl::Span<const RunNumbers> runs, const std::vector<Section>& sections) {
  std::string html = absl::StrCat("<header><h1>", Html(Title(runs)), "</h1>");
  for (const RunNumbers& run : runs) {
    const std::string who = runs.size() > 1 ? run.label + ": " : "";
    absl::StrAppend(&html, "<p class=\"lead\">", Html(who + Lead(run)), "</p>");
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
      Html(Title(runs)), "</title>\n<style>", PageStyle(), "</style>\n</head>\n<body>\n",
      Header(runs, sections), "<main>", Tiles(runs));
  for (const Section& section : sections) {
    absl::StrAppend(&html, "<section aria-labelledby=\"", section.id, "\"><h2 id=\"", section.id, "\">",
                    section.title, "</h2>", section.body, "</section>\n");
  }
  return absl::StrCat(html, "</main>\n<footer>Made by report of Plait.</footer>\n<script>", PageScript(),
                      "</script>\n</body>\n</html>\n");
}

absl::Status WritePage(absl::Span<const RunNumbers> runs, const std::string& path) {
  const std::string html = PageHtml(runs);
  return data::WriteAtomically(path, html.size(), [&](const std::string& partial) {
    std::ofstream file(partial, std::ios::binary);
    file << html;
    file.close();
    return file ? absl::OkStatus() : absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
  });
}

}  // namespace plait::report
