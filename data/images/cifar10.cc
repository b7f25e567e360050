#include "data/images/cifar10.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "data/folder_listing.h"
#include "data/hdf5/atomic_file.h"
#include "data/idx/gzip.h"
#include "data/images/regular_file.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPlane = kCifarSide * kCifarSide, kRecord = 1 + 3 * kPlane;
constexpr int kClasses = 10;
// Limit on the decompressed size of one file: a million images.
constexpr std::size_t kLargestFile = kRecord * 1'000'000;

class Cifar10 final : public ImageSource {
 public:
  explicit Cifar10(std::string records) : records_(std::move(records)) {}
  std::int64_t samples() const override { return static_cast<std::int64_t>(records_.size() / kRecord); }
  std::int64_t label(std::int64_t index) const override {
    return static_cast<unsigned char>(records_[index * kRecord]);
  }
  absl::StatusOr<Image> Read(std::int64_t index) const override {
    PLAIT_CHECK(index >= 0 && index < samples()) << index << " of " << samples();
    Image image = {kCifarSide, kCifarSide, 3, std::vector<std::uint8_t>(3 * kPlane)};
    const char* planes = records_.data() + index * kRecord + 1;
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t at = 0; at < kPlane; ++at) {
        image.pixels[3 * at + c] = static_cast<std::uint8_t>(planes[c * kPlane + at]);
      }
    }
    return image;
  }

 private:
  std::string records_;
};

// Paths of files PREFIX*.bin and PREFIX*.bin.gz, in order; without a .gz whose unpacked file is there too.
std::vector<std::string> FilesOf(const std::string& folder, const std::string& prefix) {
  const auto names = NamesIn(folder, [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename();
    return absl::StartsWith(name, prefix) && absl::EndsWith(absl::StripSuffix(name, ".gz"), ".bin");
  });
  std::vector<std::string> paths;
  if (names.ok()) {
    for (const std::string& name : *names) paths.push_back(absl::StrCat(folder, "/", name));
  }
  std::vector<std::string> once;
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(once), [&](const std::string& path) {
    return !absl::EndsWith(path, ".gz") ||
           !std::binary_search(paths.begin(), paths.end(), path.substr(0, path.size() - 3));
  });
  return once;
}

std::string FolderIn(const std::string& folder) {
  const std::string inner = folder + "/cifar-10-batches-bin";
  return FilesOf(folder, "data_batch_").empty() && !FilesOf(inner, "data_batch_").empty() ? inner : folder;
}

absl::StatusOr<std::string> RecordsOf(const std::string& path) {
  PLAIT_RETURN_IF_ERROR(CheckRegularFile(path));
  PLAIT_ASSIGN_OR_RETURN(std::string bytes, ReadWholeFile(path));
  if (IsGzip(bytes)) {
    absl::StatusOr<std::string> unpacked = Gunzip(bytes, kLargestFile + 1);
    PLAIT_RETURN_IF_ERROR(base::Prefixed(unpacked.status(), path));
    bytes = *std::move(unpacked);
  }
  if (bytes.empty() || bytes.size() % kRecord != 0 || bytes.size() > kLargestFile) {
    return absl::DataLossError(absl::StrCat(path, ": ", bytes.size(), " bytes; expected a multiple of ",
                                            kRecord,
                                            " (a label and 3 x 32 x 32 pixels); get the file again"));
  }
  for (std::size_t at = 0; at < bytes.size(); at += kRecord) {
    const int label = static_cast<unsigned char>(bytes[at]);
    if (label < kClasses) continue;
    return absl::InvalidArgumentError(absl::StrCat(path, ": image ", at / kRecord, " has label ", label,
                                                   "; expected 0 to 9: is it CIFAR-10's binary version?"));
  }
  return bytes;
}

absl::StatusOr<std::shared_ptr<const ImageSource>> ReadFiles(const std::string& folder,
                                                             const std::string& prefix) {
  std::string records;
  for (const std::string& path : FilesOf(folder, prefix)) {
    PLAIT_ASSIGN_OR_RETURN(const std::string more, RecordsOf(path));
    records += more;
  }
  if (records.empty()) {
    return absl::NotFoundError(
        absl::StrCat(folder, ": no ", prefix, "*.bin here; expected CIFAR-10's binary version"));
  }
  return std::make_shared<Cifar10>(std::move(records));
}

std::vector<std::string> ClassNames(const std::string& folder) {
  std::vector<std::string> names;
  const std::string path = folder + "/batches.meta.txt";
  if (CheckRegularFile(path).ok()) {
    const std::string text = ReadWholeFile(path).value_or("");
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
      names.emplace_back(absl::StripAsciiWhitespace(line));
    }
  }
  if (names.size() == kClasses) return names;
  names.clear();
  for (int k = 0; k < kClasses; ++k) names.push_back(absl::StrCat(k));
  return names;
}

}  // namespace

bool HasCifar10(const std::string& folder) { return !FilesOf(FolderIn(folder), "data_batch_").empty(); }

absl::StatusOr<ImageSets> ReadCifar10(const std::string& folder) {
  const std::string found = FolderIn(folder);
  ImageSets sets;
  PLAIT_ASSIGN_OR_RETURN(sets.train, ReadFiles(found, "data_batch_"));
  PLAIT_ASSIGN_OR_RETURN(sets.test, ReadFiles(found, "test_batch"));
  sets.rows = sets.columns = kCifarSide;
  PLAIT_ASSIGN_OR_RETURN(sets.scale, ScaleOf(*sets.train, 3, sets.train->samples()));
  sets.class_names = ClassNames(found);
  sets.source = absl::StrCat("CIFAR-10 in ", found);
  return sets;
}

}  // namespace plait::data
