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
#include "data/plot/heat_picture.h"
#include "data/plot/heat_text.h"
#include "data/plot/picture.h"
#include "data/plot/text_plot.h"
#include "data/plot/view.h"

namespace plait::data {
namespace {

constexpr int kLeastColumns = 40, kMostColumns = 120, kLeastRows = 9;
// In a file most heat maps have room for a line per row; a few more lines are around them.
constexpr int kMostRowsInFile = 70;

bool LocaleIsUtf8() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    const std::string name = absl::AsciiStrToLower(value);
    return absl::StrContains(name, "utf-8") || absl::StrContains(name, "utf8");
  }
  return false;
}

std::string FileName(std::string name) {
  if (name.empty()) name = "plot";
  for (char& c : name) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("._+-", c)) c = '_';
  }
  // No hidden files, and no "..".
  if (name[0] == '.') name[0] = '_';
  return name;
}

TextStyle AtLeast(TextStyle style) {
  style.columns = std::max(style.columns, kLeastColumns);
  style.rows = std::max(style.rows, kLeastRows);
  return style;
}

// The files of a plot or heat map, before gnuplot has drawn them.
struct Sheet {
  std::string name, title;
  std::string text = {};
  GnuplotPage svg = {}, png = {};
};

absl::StatusOr<Sheet> SheetOf(const Plot& plot) {
  Sheet sheet = {FileName(plot.name), plot.title};
  PLAIT_ASSIGN_OR_RETURN(sheet.text, RenderText(plot, {}));
  PLAIT_ASSIGN_OR_RETURN(const View view, ViewOf(plot, kPictureWidth));
  sheet.svg = PicturePage(plot, view, PictureFormat::kSvg);
  sheet.png = PicturePage(plot, view, PictureFormat::kPng);
  return sheet;
}

absl::StatusOr<Sheet> SheetOf(const HeatMap& map) {
  Sheet sheet = {FileName(map.name), map.title};
  PLAIT_ASSIGN_OR_RETURN(sheet.text, RenderText(map, {.rows = kMostRowsInFile}));
  PLAIT_ASSIGN_OR_RETURN(const HeatView view, HeatPictureView(map, PictureFormat::kSvg));
  sheet.svg = HeatPage(map, view, PictureFormat::kSvg);
  sheet.png = HeatPage(map, view, PictureFormat::kPng);
  return sheet;
}

absl::Status CheckNames(const std::vector<Sheet>& sheets) {
  std::set<std::string> names;
  for (const Sheet& sheet : sheets) {
    if (!names.insert(sheet.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two plots are named ", sheet.name, ": they would be one file"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> WriteSheets(const std::vector<Sheet>& sheets,
                                                     const std::string& folder) {
  PLAIT_RETURN_IF_ERROR(CheckNames(sheets));
  if (sheets.empty()) return std::vector<std::string>();
  std::vector<GnuplotPage> pages;
  std::vector<std::pair<std::string, std::string>> files;  // path and contents
  for (const Sheet& sheet : sheets) {
    files.emplace_back(absl::StrCat(folder, "/tplots/", sheet.name, ".txt"), sheet.text);
    pages.push_back(sheet.svg);
    pages.push_back(sheet.png);
  }
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> drawn, RunGnuplot(pages));
  for (std::size_t i = 0; i < sheets.size(); ++i) {
    const auto& [name, title, text, svg, png] = sheets[i];
    files.emplace_back(absl::StrCat(folder, "/svgs/", name, ".svg"), FileSvg(drawn[2 * i], name, title));
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

}  // namespace

TextStyle TextStyleOf(int file_descriptor) {
  const base::Terminal terminal = base::DetectTerminal(file_descriptor);
  return {
      .columns = std::min(terminal.columns, kMostColumns), .utf8 = LocaleIsUtf8(), .colour = terminal.colour};
}

absl::StatusOr<std::string> RenderText(const Plot& plot, const TextStyle& style) {
  const TextStyle used = AtLeast(style);
  PLAIT_ASSIGN_OR_RETURN(const View view, ViewOf(plot, 2 * used.columns));
  return TextPlot(plot, view, used);
}

absl::StatusOr<std::string> RenderText(const HeatMap& map, const TextStyle& style) {
  return HeatText(map, AtLeast(style));
}

absl::StatusOr<std::vector<std::string>> RenderTexts(absl::Span<const Plot> plots, const TextStyle& style) {
  std::vector<std::string> texts;
  for (const Plot& plot : plots) {
    PLAIT_ASSIGN_OR_RETURN(texts.emplace_back(), RenderText(plot, style));
  }
  return texts;
}

absl::StatusOr<std::vector<PageChart>> RenderPageHeatMaps(
    int count, const std::function<absl::StatusOr<HeatMap>(int)>& map) {
  std::vector<GnuplotPage> pages;
  std::vector<PageChart> charts;
  std::vector<std::string> titles;
  for (int i = 0; i < count; ++i) {
    PLAIT_ASSIGN_OR_RETURN(const HeatMap drawn, map(i));
    PLAIT_ASSIGN_OR_RETURN(const HeatView view, HeatPictureView(drawn, PictureFormat::kPage));
    pages.push_back(HeatPage(drawn, view, PictureFormat::kPage));
    charts.push_back({"", view.notes});
    titles.push_back(drawn.title);
  }
  if (pages.empty()) return charts;
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> svgs, RunGnuplot(pages));
  for (int i = 0; i < count; ++i) charts[i].svg = PageHeatSvg(svgs[i], titles[i], absl::StrCat("heat", i));
  return charts;
}

absl::StatusOr<std::vector<std::string>> WritePictures(absl::Span<const Plot> plots,
                                                       const std::string& folder,
                                                       absl::Span<const HeatMap> maps) {
  std::vector<Sheet> sheets;
  for (const Plot& plot : plots) {
    PLAIT_ASSIGN_OR_RETURN(sheets.emplace_back(), SheetOf(plot));
  }
  for (const HeatMap& map : maps) {
    PLAIT_ASSIGN_OR_RETURN(sheets.emplace_back(), SheetOf(map));
  }
  return WriteSheets(sheets, folder);
}

}  // namespace plait::data
