#include "tools/report_pages/table_html.h"

#include "absl/strings/str_cat.h"
#include "tools/report_pages/html_text.h"
#include "tools/report_pages/line_chart.h"

namespace plait::report {
namespace {

// Texts that are longer than this wrap.
constexpr std::size_t kLong = 40;

// The dot of the run with this label; "" where there is none, or only one run.
std::string DotOf(const std::string& label, absl::Span<const RunNumbers> runs) {
  for (std::size_t i = 0; i < runs.size() && runs.size() > 1; ++i) {
    if (runs[i].label == label) return absl::StrCat("<i class=\"dot c", i % kRunColours, "\"></i>");
  }
  return "";
}

class TableWriter {
 public:
  TableWriter(const ReportTable& table, absl::Span<const RunNumbers> runs) : table_(table), runs_(runs) {}

  std::string Html() const {
    const std::string title = report::Html(table_.title);
    std::string html = absl::StrCat("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"",
                                    title, "\"><table aria-label=\"", title, "\"><thead><tr>");
    for (std::size_t column = 0; column < table_.header.size(); ++column) {
      // A cell without text is no header.
      const std::string& name = table_.header[column];
      const char* tag = name.empty() ? "td" : "th";
      absl::StrAppend(&html, "<", tag, IsText(column) ? " class=\"text\"" : "",
                      name.empty() ? "" : " scope=\"col\"", ">", DotOf(name, runs_), report::Html(name), "</",
                      tag, ">");
    }
    html += "</tr></thead><tbody>";
    for (const auto& row : table_.rows) html += Row(row);
    absl::StrAppend(&html, "</tbody></table></div>");
    if (!table_.foot.empty()) absl::StrAppend(&html, "<p class=\"foot\">", report::Html(table_.foot), "</p>");
    return html;
  }

 private:
  bool IsText(std::size_t column) const {
    return column < static_cast<std::size_t>(table_.texts) ||
           column + table_.last_texts >= table_.header.size();
  }

  std::string Row(const std::vector<std::string>& row) const {
    std::string html = absl::StrCat("<tr><th scope=\"row\" class=\"text\">", report::Html(row[0]), "</th>");
    for (std::size_t column = 1; column < row.size(); ++column) {
      const bool text = IsText(column);
      const char* style = text && row[column].size() > kLong ? " class=\"text long\""
                          : text                             ? " class=\"text\""
                                                             : "";
      const std::string dot = table_.header[column] == "run" ? DotOf(row[column], runs_) : "";
      absl::StrAppend(&html, "<td", style, ">", dot, report::Html(row[column]), "</td>");
    }
    return html + "</tr>";
  }

  const ReportTable& table_;
  absl::Span<const RunNumbers> runs_;
};

}  // namespace

std::string TableHtml(const ReportTable& table, absl::Span<const RunNumbers> runs) {
  return TableWriter(table, runs).Html();
}

}  // namespace plait::report
