#include "tools/report_parts/table_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/text.h"

namespace plait::report {
namespace {

constexpr int kIndent = 2;
constexpr int kGap = 2;
// Minimum width of a column of text.
constexpr int kLeastText = 8;

// For one line of a terminal or of Markdown.
std::string OneLine(absl::string_view text) { return base::Printable(text, "?", "?"); }

std::string Padded(const std::string& text, int width, bool left) {
  const std::string blanks(std::max(0, width - base::TextWidth(text)), ' ');
  return left ? text + blanks : blanks + text;
}

// A table as lines: columns next to each other, cells wrapped into their widths.
class TableLayout {
 public:
  TableLayout(const ReportTable& table, int columns) : table_(table), columns_(columns) {
    for (std::size_t column = 0; column < table.header.size(); ++column) {
      int width = base::TextWidth(table.header[column]);
      for (const auto& row : table.rows) width = std::max(width, base::TextWidth(row[column]));
      widths_.push_back(std::max(1, width));
    }
    Squeeze();
  }

  std::string Text() const {
    std::string text;
    std::size_t next = 1;
    bool first_part = true;
    do {
      std::vector<std::size_t> shown = RepeatedColumns(next);
      const std::size_t repeated = shown.size();
      int used = kIndent - kGap;
      for (const std::size_t column : shown) used += kGap + widths_[column];
      while (next < widths_.size() && (shown.size() == repeated || used + kGap + widths_[next] <= columns_)) {
        used += kGap + widths_[next];
        shown.push_back(next++);
      }
      if (!text.empty()) text += "\n";
      AddRow(table_.header, shown, text);
      for (const auto& row : table_.rows) {
        if (first_part || HasEntry(row, shown, repeated)) AddRow(row, shown, text);
      }
      first_part = false;
    } while (next < widths_.size());
    return text;
  }

 private:
  // Columns repeated at the start of every part, to name the rows: the first one, and the run if it fits in half a
  // line.
  std::vector<std::size_t> RepeatedColumns(std::size_t next) const {
    std::vector<std::size_t> columns = {0};
    for (std::size_t column = 1; column < next && next > 1; ++column) {
      const bool fits = kIndent + widths_[0] + kGap + widths_[column] <= columns_ / 2;
      if (table_.header[column] == "run" && fits) columns.push_back(column);
    }
    return columns;
  }

  // Rows without entries are omitted from later parts.
  static bool HasEntry(const std::vector<std::string>& row, const std::vector<std::size_t>& shown,
                       std::size_t repeated) {
    return std::any_of(shown.begin() + repeated, shown.end(),
                       [&](std::size_t column) { return !row[column].empty(); });
  }

  // Narrows long columns: the first to at most half a line, each other so that both fit on a line.
  void Squeeze() {
    const int room = std::max(columns_ - kIndent, 2 * kLeastText + kGap);
    widths_[0] = std::min(widths_[0], std::max(kLeastText, (room - kGap) / 2));
    for (std::size_t column = 1; column < widths_.size(); ++column) {
      widths_[column] = std::min(widths_[column], room - kGap - widths_[0]);
    }
    // A table of text only, such as RunTable, shares the line evenly among its columns.
    const int columns = static_cast<int>(widths_.size());
    if (table_.texts + table_.last_texts < columns || columns < 2) return;
    const int share = (room - widths_[0]) / (columns - 1) - kGap;
    if (share < 2 * kLeastText) return;
    int over = kIndent + widths_[0] - columns_;
    for (int column = 1; column < columns; ++column) over += kGap + widths_[column];
    if (over <= 0) return;
    for (int column = 1; column < columns; ++column) widths_[column] = std::min(widths_[column], share);
  }

  void AddRow(const std::vector<std::string>& row, const std::vector<std::size_t>& shown,
              std::string& text) const {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 1;
    for (const std::size_t column : shown) {
      cells.push_back(base::WrapText(row[column], widths_[column]));
      height = std::max(height, cells.back().size());
    }
    for (std::size_t line = 0; line < height; ++line) {
      std::string whole(kIndent, ' ');
      for (std::size_t i = 0; i < shown.size(); ++i) {
        const std::string part = line < cells[i].size() ? cells[i][line] : "";
        if (i > 0) whole += std::string(kGap, ' ');
        whole += Padded(part, widths_[shown[i]], table_.IsText(shown[i]));
      }
      absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(whole), "\n");
    }
  }

  const ReportTable& table_;
  int columns_;
  std::vector<int> widths_;
};

}  // namespace

std::string TextTable(const ReportTable& table, int columns) {
  ReportTable clean = table;
  for (auto& row : clean.rows) std::transform(row.begin(), row.end(), row.begin(), OneLine);
  std::transform(clean.header.begin(), clean.header.end(), clean.header.begin(), OneLine);
  std::string text = absl::StrCat(clean.title, "\n", TableLayout(clean, std::max(columns, 20)).Text());
  if (clean.foot.empty()) return text;
  for (const std::string& line : base::WrapText(OneLine(clean.foot), std::max(columns, 20) - kIndent)) {
    absl::StrAppend(&text, std::string(kIndent, ' '), line, "\n");
  }
  return text;
}

std::string MarkdownLine(absl::string_view text) {
  return absl::StrReplaceAll(OneLine(text), {{"|", "\\|"}, {"<", "&lt;"}, {"`", "\\`"}});
}

std::string MarkdownTable(const ReportTable& table) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::vector<std::string> safe;
    for (const std::string& cell : cells) safe.push_back(MarkdownLine(cell));
    return absl::StrCat("| ", absl::StrJoin(safe, " | "), " |\n");
  };
  std::vector<std::string> rule;
  for (std::size_t column = 0; column < table.header.size(); ++column) {
    rule.push_back(table.IsText(column) ? "---" : "---:");
  }
  std::string text = absl::StrCat("## ", table.title, "\n\n", line(table.header), line(rule));
  for (const auto& row : table.rows) text += line(row);
  if (!table.foot.empty()) absl::StrAppend(&text, "\n", MarkdownLine(table.foot), "\n");
  return text;
}

}  // namespace plait::report
