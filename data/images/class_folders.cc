#include "data/images/class_folders.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "data/folder_listing.h"
#include "data/images/decode.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kTestParts = 10;  // one part of ten is for testing

struct LabelledFile {
  std::string path;
  std::int64_t label = 0;
};

class ImageFiles final : public ImageSource {
 public:
  explicit ImageFiles(std::vector<LabelledFile> files) : files_(std::move(files)) {}
  std::int64_t samples() const override { return static_cast<std::int64_t>(files_.size()); }
  std::int64_t label(std::int64_t index) const override { return files_[index].label; }
  absl::StatusOr<Image> Read(std::int64_t index) const override {
    PLAIT_CHECK(index >= 0 && index < samples()) << index << " of " << samples();
    return ReadImage(files_[index].path);
  }

 private:
  std::vector<LabelledFile> files_;
};

bool IsImageName(const fs::path& path) {
  const std::string ending = absl::AsciiStrToLower(path.extension().string());
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

absl::Status AddFiles(const std::string& folder, const std::vector<std::string>& classes,
                      std::vector<LabelledFile>& files) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> folders, ClassFoldersIn(folder));
  for (const std::string& name : folders) {
    const auto found = std::find(classes.begin(), classes.end(), name);
    if (found == classes.end()) {
      return absl::InvalidArgumentError(absl::StrCat(folder, "/", name, ": not a class of the training set"));
    }
    const std::string path = absl::StrCat(folder, "/", name);
    PLAIT_ASSIGN_OR_RETURN(
        const std::vector<std::string> images,
        NamesIn(path, [](const fs::directory_entry& entry) { return IsImageName(entry.path()); }));
    for (const std::string& image : images) {
      files.push_back({absl::StrCat(path, "/", image), found - classes.begin()});
    }
  }
  return absl::OkStatus();
}

// The first class without a file; empty: none, or there are no files at all.
std::string ClassWithoutFiles(const std::vector<std::string>& classes,
                              const std::vector<LabelledFile>& files) {
  std::vector<bool> has_files(classes.size());
  for (const LabelledFile& file : files) has_files[file.label] = true;
  const auto empty = std::find(has_files.begin(), has_files.end(), false);
  return files.empty() || empty == has_files.end() ? "" : classes[empty - has_files.begin()];
}

// A class that cannot be learned would count as one.
absl::Status CheckEachClassHasFiles(const std::string& folder, const std::vector<std::string>& classes,
                                    const std::vector<LabelledFile>& files) {
  const std::string name = ClassWithoutFiles(classes, files);
  if (name.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      folder, "/", name, ": a class without images; expected .jpg and .png files in it, or no such folder"));
}

absl::Status CheckEachClassIsTrained(const std::string& folder, const std::vector<std::string>& classes,
                                     const std::vector<LabelledFile>& train) {
  const std::string name = ClassWithoutFiles(classes, train);
  if (name.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      folder, "/", name,
      ": too few images, all of them are among the test images, a tenth of all; expected more, or "
      "train/CLASS and val/CLASS"));
}

// Takes the files for testing out of `train`; `prefix` is not part of what is hashed.
std::vector<LabelledFile> SplitByHash(std::size_t prefix, std::vector<LabelledFile>& train) {
  std::vector<LabelledFile> test, rest;
  for (LabelledFile& file : train) {
    const bool tests = base::DeriveSeed(0, file.path.substr(prefix)) % kTestParts == 0;
    (tests ? test : rest).push_back(std::move(file));
  }
  train = std::move(rest);
  return test;
}

}  // namespace

absl::StatusOr<ImageSets> FindClassFolders(const std::string& folder) {
  std::error_code error;
  const auto has = [&](const char* name) { return fs::is_directory(absl::StrCat(folder, "/", name), error); };
  const bool split = has("train") && (has("val") || has("test"));
  const std::string train_folder = split ? folder + "/train" : folder;
  ImageSets sets;
  PLAIT_ASSIGN_OR_RETURN(sets.class_names, ClassFoldersIn(train_folder));
  std::vector<LabelledFile> train, test;
  PLAIT_RETURN_IF_ERROR(AddFiles(train_folder, sets.class_names, train));
  PLAIT_RETURN_IF_ERROR(CheckEachClassHasFiles(train_folder, sets.class_names, train));
  if (split) {
    PLAIT_RETURN_IF_ERROR(AddFiles(folder + (has("val") ? "/val" : "/test"), sets.class_names, test));
  } else {
    test = SplitByHash(folder.size(), train);
    PLAIT_RETURN_IF_ERROR(CheckEachClassIsTrained(folder, sets.class_names, train));
  }
  if (train.empty() || test.empty()) {
    return absl::NotFoundError(absl::StrCat(folder, ": ", train.size(), " training and ", test.size(),
                                            " test images found; expected CIFAR-10's binary files, IDX "
                                            "files, or .jpg and .png files in train/CLASS "
                                            "and val/CLASS, or in CLASS"));
  }
  sets.train = std::make_shared<ImageFiles>(std::move(train));
  sets.test = std::make_shared<ImageFiles>(std::move(test));
  // Mean and deviation of ImageNet, as torchvision's models use them.
  sets.scale = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
  sets.source = absl::StrCat("image files in ", folder);
  sets.sorted = true;
  return sets;
}

}  // namespace plait::data
