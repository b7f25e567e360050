#include "data/video/video_sets.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "data/folder_listing.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/checked_array.h"
#include "data/images/regular_file.h"
#include "data/video/read_video.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;

struct LabelledVideo {
  std::string name;  // CLASS/FILE
  std::int64_t label = 0;
};

absl::StatusOr<std::string> FingerprintOfFile(const std::string& path) {
  PLAIT_RETURN_IF_ERROR(CheckRegularFile(path));
  PLAIT_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path));
  return absl::StrCat(bytes.size(), ":",
                      absl::Hex(Crc32(bytes.data(), static_cast<std::int64_t>(bytes.size()))));
}

bool IsFolder(const fs::directory_entry& entry) {
  std::error_code error;
  return entry.is_directory(error);
}

class VideoFiles final : public VideoSource {
 public:
  VideoFiles(std::string folder, std::vector<LabelledVideo> videos)
      : folder_(std::move(folder)), videos_(std::move(videos)) {}
  std::int64_t videos() const override { return static_cast<std::int64_t>(videos_.size()); }
  std::int64_t label(std::int64_t index) const override { return videos_.at(index).label; }
  std::string name(std::int64_t index) const override { return videos_.at(index).name; }
  absl::StatusOr<std::string> Fingerprint(std::int64_t index) const override {
    const std::string path = PathOf(index);
    std::error_code error;
    if (!fs::is_directory(path, error)) return FingerprintOfFile(path);
    std::string all;
    PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           NamesIn(path, [](const auto& entry) { return !IsFolder(entry); }));
    for (const std::string& name : names) {
      PLAIT_ASSIGN_OR_RETURN(const std::string one, FingerprintOfFile(absl::StrCat(path, "/", name)));
      absl::StrAppend(&all, name, ":", one, "\n");
    }
    return absl::StrCat(all.size(), ":", absl::Hex(Crc32(all.data(), static_cast<std::int64_t>(all.size()))));
  }
  absl::StatusOr<Clip> Read(std::int64_t index, const ClipOptions& options) const override {
    return ReadVideo(PathOf(index), options);
  }

 private:
  std::string PathOf(std::int64_t index) const { return absl::StrCat(folder_, "/", videos_.at(index).name); }

  std::string folder_;
  std::vector<LabelledVideo> videos_;
};

// A class with its videos, by name, before they are split.
struct VideoClass {
  std::string name;
  std::int64_t label = 0;
  std::vector<std::string> videos;
};

struct Split {
  std::vector<LabelledVideo> train, test;
};

void SplitByPlace(const VideoClass& of, Split& split) {
  const std::size_t count = of.videos.size();
  const std::size_t tests = count < 2 ? 0 : std::max<std::size_t>(1, count / 5);
  for (std::size_t i = 0; i < count; ++i) {
    (i + tests < count ? split.train : split.test).push_back({of.name + "/" + of.videos[i], of.label});
  }
}

// The file or folder that a split lists as `listed`: a folder of frames has no extension.
std::string FoundAs(const VideoClass& of, const std::string& listed) {
  for (const std::string& name : {listed, fs::path(listed).stem().string()}) {
    if (std::binary_search(of.videos.begin(), of.videos.end(), name)) return name;
  }
  return "";
}

absl::Status TakeLine(const VideoClass& of, const std::vector<std::string>& words,
                      std::set<std::string>& taken, Split& split) {
  const bool marked = words.size() == 2 && words[1].size() == 1 && words[1] >= "0" && words[1] <= "2";
  if (!marked) return absl::InvalidArgumentError("expected the name of a video and 0, 1 or 2");
  const std::string name = FoundAs(of, words[0]);
  if (name.empty())
    return absl::NotFoundError(absl::StrCat(words[0], " is not among the videos of ", of.name));
  if (!taken.insert(name).second)
    return absl::InvalidArgumentError(absl::StrCat(words[0], " is named twice"));
  if (words[1] == "0") return absl::OkStatus();
  (words[1] == "1" ? split.train : split.test).push_back({of.name + "/" + name, of.label});
  return absl::OkStatus();
}

absl::Status SplitByFile(const VideoClass& of, const std::string& path, Split& split) {
  PLAIT_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  std::set<std::string> taken;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    PLAIT_RETURN_IF_ERROR(base::Prefixed(TakeLine(of, words, taken, split), absl::StrCat(path, ":", number)));
  }
  return absl::OkStatus();
}

absl::StatusOr<VideoClass> OpenClass(const std::string& folder, const std::string& name, std::int64_t label) {
  const std::string path = absl::StrCat(folder, "/", name);
  VideoClass found = {name, label, {}};
  PLAIT_ASSIGN_OR_RETURN(found.videos, NamesIn(path, [](const fs::directory_entry& entry) {
                           return IsFolder(entry) || IsVideoName(entry.path().string());
                         }));
  if (!found.videos.empty()) return found;
  return absl::NotFoundError(
      absl::StrCat(path, ": a class without videos; expected NAME.avi, or folders of frames"));
}

}  // namespace

absl::StatusOr<VideoSets> FindVideos(const FindVideosOptions& options) {
  const std::string& folder = options.folder;
  VideoSets sets;
  PLAIT_ASSIGN_OR_RETURN(sets.class_names, ClassFoldersIn(folder));
  if (sets.class_names.empty()) {
    return absl::NotFoundError(absl::StrCat(folder, ": no class folders; expected CLASS/NAME.avi in it"));
  }
  Split split;
  for (std::size_t label = 0; label < sets.class_names.size(); ++label) {
    PLAIT_ASSIGN_OR_RETURN(const VideoClass found,
                           OpenClass(folder, sets.class_names[label], static_cast<std::int64_t>(label)));
    if (options.splits.empty()) {
      SplitByPlace(found, split);
      continue;
    }
    PLAIT_RETURN_IF_ERROR(SplitByFile(
        found, absl::StrCat(options.splits, "/", found.name, "_test_split", options.split, ".txt"), split));
  }
  if (split.train.empty() || split.test.empty()) {
    return absl::NotFoundError(absl::StrCat(folder, ": ", split.train.size(), " videos to train on and ",
                                            split.test.size(), " to test; expected at least one of each"));
  }
  sets.train = std::make_shared<VideoFiles>(folder, std::move(split.train));
  sets.test = std::make_shared<VideoFiles>(folder, std::move(split.test));
  sets.source = absl::StrCat("videos in ", folder);
  if (!options.splits.empty()) absl::StrAppend(&sets.source, ", split ", options.split);
  return sets;
}

}  // namespace plait::data
