#include "data/plot/plot.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/terminal.h"
#include "data/hdf5/atomic_file.h"
#include "data/plot/curve.h"
#include "data/plot/gnuplot.h"
#include "data/plot/picture.h"
#include "data/plot/text_picture.h"

namespace plait::data {
namespace {

constexpr int kMostColumns = 120;

bool SpeaksUtf8() {
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

// Everything that one run of gnuplot draws for a number of plots.
struct Session {
  std::vector<GnuplotPage> pages;
  std::vector<std::string> drawn;

  // The pages [first, first + count) that were drawn.
  absl::Span<const std::string> Drawn(std::size_t first, std::size_t count) const {
    return absl::MakeConstSpan(drawn).subspan(first, count);
  }
  absl::Status Run() {
    if (pages.empty()) return absl::OkStatus();
    PLAIT_ASSIGN_OR_RETURN(drawn, RunGnuplot(pages));
    return absl::OkStatus();
  }
};

struct TextJob {
  TextPicture picture;
  std::size_t first, count;
};

absl::StatusOr<TextJob> AddText(const Plot& plot, const TextStyle& style, Session& session) {
  PLAIT_ASSIGN_OR_RETURN(TextPicture picture, TextPicture::Create(plot, style));
  const std::size_t first = session.pages.size();
  for (GnuplotPage& page : picture.Pages()) session.pages.push_back(std::move(page));
  return TextJob{std::move(picture), first, session.pages.size() - first};
}

absl::StatusOr<std::string> TextOf(const TextJob& job, const Session& session) {
  return job.picture.Assemble(session.Drawn(job.first, job.count));
}

struct PictureJob {
  std::string path, name, title;
  PictureFormat format;
  std::size_t page;
};

class PictureWriter {
 public:
  PictureWriter(const std::string& folder, const PictureOptions& options)
      : folder_(folder), options_(options) {}

  absl::Status Add(const Plot& plot) {
    const std::string name = FileName(plot);
    if (options_.text) {
      PLAIT_ASSIGN_OR_RETURN(TextJob job, AddText(plot, options_.text_style, session_));
      texts_.push_back({absl::StrCat(folder_, "/tplots/", name, ".txt"), std::move(job)});
    }
    if (!options_.svg && !options_.png) return absl::OkStatus();
    PLAIT_ASSIGN_OR_RETURN(const View view, ViewOf(plot, options_.picture_style.width));
    if (options_.svg) AddPicture("/svgs/", name, ".svg", PictureFormat::kSvg, plot, view);
    if (options_.png) AddPicture("/pngs/", name, ".png", PictureFormat::kPng, plot, view);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> Write() {
    PLAIT_RETURN_IF_ERROR(session_.Run());
    std::vector<std::string> paths;
    for (const auto& [path, job] : texts_) {
      PLAIT_ASSIGN_OR_RETURN(const std::string text, TextOf(job, session_));
      PLAIT_RETURN_IF_ERROR(WriteFile(path, text));
      paths.push_back(path);
    }
    for (const PictureJob& job : pictures_) {
      const std::string& drawn = session_.drawn[job.page];
      PLAIT_RETURN_IF_ERROR(WriteFile(
          job.path, job.format == PictureFormat::kSvg ? TidySvg(drawn, job.name, job.title) : drawn));
      paths.push_back(job.path);
    }
    return paths;
  }

 private:
  void AddPicture(const char* folder, const std::string& name, const char* suffix, PictureFormat format,
                  const Plot& plot, const View& view) {
    pictures_.push_back(
        {absl::StrCat(folder_, folder, name, suffix), name, plot.title, format, session_.pages.size()});
    session_.pages.push_back(PicturePage(plot, view, options_.picture_style, format));
  }

  static absl::Status WriteFile(const std::string& path, const std::string& contents) {
    PLAIT_RETURN_IF_ERROR(MakeFolders(FolderOf(path)));
    const auto size = static_cast<std::int64_t>(contents.size());
    return WriteAtomically(path, size, [&](const std::string& partial) {
      std::ofstream file(partial, std::ios::binary);
      file.write(contents.data(), static_cast<std::streamsize>(size)).flush();
      return file ? absl::OkStatus() : absl::UnavailableError("the file cannot be written");
    });
  }

  std::string folder_;
  PictureOptions options_;
  Session session_;
  std::vector<std::pair<std::string, TextJob>> texts_;
  std::vector<PictureJob> pictures_;
};

}  // namespace

TextStyle TextStyleOf(int file_descriptor) {
  const base::Terminal terminal = base::DetectTerminal(file_descriptor);
  return {
      .columns = std::min(terminal.columns, kMostColumns), .utf8 = SpeaksUtf8(), .colour = terminal.colour};
}

absl::StatusOr<std::vector<std::string>> RenderTexts(absl::Span<const Plot> plots, const TextStyle& style) {
  Session session;
  std::vector<TextJob> jobs;
  for (const Plot& plot : plots) {
    PLAIT_ASSIGN_OR_RETURN(TextJob job, AddText(plot, style, session));
    jobs.push_back(std::move(job));
  }
  PLAIT_RETURN_IF_ERROR(session.Run());
  std::vector<std::string> texts;
  for (const TextJob& job : jobs) {
    PLAIT_ASSIGN_OR_RETURN(std::string text, TextOf(job, session));
    texts.push_back(std::move(text));
  }
  return texts;
}

absl::StatusOr<std::string> RenderText(const Plot& plot, const TextStyle& style) {
  PLAIT_ASSIGN_OR_RETURN(std::vector<std::string> texts, RenderTexts({plot}, style));
  return std::move(texts[0]);
}

absl::StatusOr<std::vector<std::string>> RenderSvgs(absl::Span<const Plot> plots, const PictureStyle& style) {
  Session session;
  for (const Plot& plot : plots) {
    PLAIT_ASSIGN_OR_RETURN(const View view, ViewOf(plot, style.width));
    session.pages.push_back(PicturePage(plot, view, style, PictureFormat::kSvg));
  }
  PLAIT_RETURN_IF_ERROR(session.Run());
  std::vector<std::string> svgs;
  for (std::size_t i = 0; i < plots.size(); ++i) {
    svgs.push_back(TidySvg(session.drawn[i], FileName(plots[i]), plots[i].title));
  }
  return svgs;
}

absl::StatusOr<std::string> RenderSvg(const Plot& plot, const PictureStyle& style) {
  PLAIT_ASSIGN_OR_RETURN(std::vector<std::string> svgs, RenderSvgs({plot}, style));
  return std::move(svgs[0]);
}

absl::StatusOr<std::vector<std::string>> WritePictures(absl::Span<const Plot> plots,
                                                       const std::string& folder,
                                                       const PictureOptions& options) {
  PLAIT_RETURN_IF_ERROR(CheckNames(plots));
  PictureWriter writer(folder, options);
  for (const Plot& plot : plots) PLAIT_RETURN_IF_ERROR(writer.Add(plot));
  return writer.Write();
}

}  // namespace plait::data
