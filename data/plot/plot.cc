#include "data/plot/plot.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/terminal.h"
#include "data/hdf5/atomic_file.h"
#include "data/plot/gnuplot.h"
#include "data/plot/picture.h"
#include "data/plot/text_plot.h"
#include "data/plot/view.h"

namespace plait::data {
namespace {

constexpr int kLeastColumns = 40, kMostColumns = 120, kLeastRows = 9;

bool LocaleIsUtf8() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    const std::string name = absl::AsciiStrToLower(value);
    return absl::StrContains(name, "utf-8") || absl::StrContains(name, "utf8");
  }
  return false;
}

std::string FileName(const Plot& plot) {
  std::string name = plot.name.empty() ? "plot" : plot.name;
  for (char& c : name) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("._+-", c)) c = '_';
  }
  // No hidden files, and no "..".
  if (name[0] == '.') name[0] = '_';
  return name;
}

absl::Status CheckNames(absl::Span<const Plot> plots) {
  std::set<std::string> names;
  for (const Plot& plot : plots) {
    if (!names.insert(FileName(plot)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two plots are named ", FileName(plot), ": they would be one file"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

TextStyle TextStyleOf(int file_descriptor) {
  const base::Terminal terminal = base::DetectTerminal(file_descriptor);
  return {
      .columns = std::min(terminal.columns, kMostColumns), .utf8 = LocaleIsUtf8(), .colour = terminal.colour};
}

absl::StatusOr<std::string> RenderText(const Plot& plot, const TextStyle& style) {
  TextStyle used = style;
  used.columns = std::max(style.columns, kLeastColumns);
  used.rows = std::max(style.rows, kLeastRows);
  PLAIT_ASSIGN_OR_RETURN(const View view, ViewOf(plot, 2 * used.columns));
  return TextPlot(plot, view, used);
}

absl::StatusOr<std::vector<std::string>> RenderTexts(absl::Span<const Plot> plots, const TextStyle& style) {
  std::vector<std::string> texts;
  for (const Plot& plot : plots) {
    PLAIT_ASSIGN_OR_RETURN(texts.emplace_back(), RenderText(plot, style));
  }
  return texts;
}

absl::StatusOr<std::vector<PageChart>> RenderPageCharts(
    int count, const std::function<absl::StatusOr<Plot>(int)>& plot) {
  std::vector<GnuplotPage> pages;
  std::vector<std::pair<Plot, View>> shown;
  for (int i = 0; i < count; ++i) {
    PLAIT_ASSIGN_OR_RETURN(Plot drawn, plot(i));
    PLAIT_ASSIGN_OR_RETURN(View view, ViewOf(drawn, kPageChartWidth));
    pages.push_back(PicturePage(drawn, view, PictureFormat::kPage));
    drawn.series.clear();
    shown.emplace_back(std::move(drawn), std::move(view));
  }
  std::vector<PageChart> charts;
  if (pages.empty()) return charts;
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> svgs, RunGnuplot(pages));
  for (int i = 0; i < count; ++i) {
    const auto& [drawn, view] = shown[i];
    charts.push_back({PageSvg(svgs[i], drawn, view, absl::StrCat("chart", i)), view.notes});
  }
  return charts;
}

absl::StatusOr<std::vector<std::string>> WritePictures(absl::Span<const Plot> plots,
                                                       const std::string& folder) {
  PLAIT_RETURN_IF_ERROR(CheckNames(plots));
  std::vector<GnuplotPage> pages;
  std::vector<std::pair<std::string, std::string>> files;  // path and contents
  for (const Plot& plot : plots) {
    PLAIT_ASSIGN_OR_RETURN(const std::string text, RenderText(plot, {}));
    PLAIT_ASSIGN_OR_RETURN(const View view, ViewOf(plot, kPictureWidth));
    files.emplace_back(absl::StrCat(folder, "/tplots/", FileName(plot), ".txt"), text);
    pages.push_back(PicturePage(plot, view, PictureFormat::kSvg));
    pages.push_back(PicturePage(plot, view, PictureFormat::kPng));
  }
  if (plots.empty()) return std::vector<std::string>();
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> drawn, RunGnuplot(pages));
  for (std::size_t i = 0; i < plots.size(); ++i) {
    const std::string name = FileName(plots[i]);
    files.emplace_back(absl::StrCat(folder, "/svgs/", name, ".svg"),
                       FileSvg(drawn[2 * i], name, plots[i].title));
    files.emplace_back(absl::StrCat(folder, "/pngs/", name, ".png"), drawn[2 * i + 1]);
  }
  std::vector<std::string> paths;
  for (const auto& [path, contents] : files) {
    PLAIT_RETURN_IF_ERROR(MakeFolders(FolderOf(path)));
    PLAIT_RETURN_IF_ERROR(WriteWholeFile(path, contents));
    paths.push_back(path);
  }
  return paths;
}

}  // namespace plait::data
