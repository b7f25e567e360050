#include "data/idx/image_folder.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "data/idx/idx.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;

constexpr char kTrainImages[] = "train-images-idx3-ubyte";
constexpr char kTrainLabels[] = "train-labels-idx1-ubyte";
constexpr char kTestImages[] = "t10k-images-idx3-ubyte";
constexpr char kTestLabels[] = "t10k-labels-idx1-ubyte";

// The file of this name in one of its spellings; empty where there is none.
std::string FindFile(const std::string& folder, const std::string& name) {
  const std::string dotted = absl::StrReplaceAll(name, {{"-idx", ".idx"}});
  for (const std::string& spelling : {name, name + ".gz", dotted, dotted + ".gz"}) {
    std::string path = absl::StrCat(folder, "/", spelling);
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored)) return path;
  }
  return "";
}

absl::StatusOr<std::string> FindFolder(const std::string& folder) {
  for (const std::string& candidate : {folder, folder + "/raw", folder + "/MNIST/raw"}) {
    if (!FindFile(candidate, kTrainImages).empty()) return candidate;
  }
  return absl::NotFoundError(absl::StrCat(folder, ": no IDX images here: expected ", kTrainImages, ", ",
                                          kTrainLabels, ", ", kTestImages, " and ", kTestLabels,
                                          ", each plain or .gz"));
}

absl::StatusOr<ImageSplit> ReadSplit(const std::string& folder, const std::string& images,
                                     const std::string& labels) {
  const std::string images_path = FindFile(folder, images), labels_path = FindFile(folder, labels);
  for (const auto& [path, name] : {std::pair(images_path, images), std::pair(labels_path, labels)}) {
    if (path.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(folder, ": ", name, " is missing, plain or .gz"));
    }
  }
  return ReadIdxSplit(images_path, labels_path);
}

std::vector<std::string> NumberedClasses(const ImageSet& set) {
  int classes = 10;
  for (const ImageSplit* split : {&set.train, &set.test}) {
    classes = std::max(classes, 1 + *std::max_element(split->labels.begin(), split->labels.end()));
  }
  std::vector<std::string> names;
  for (int i = 0; i < classes; ++i) names.push_back(absl::StrCat(i));
  return names;
}

}  // namespace

absl::StatusOr<ImageSet> ReadImageFolder(const std::string& folder) {
  PLAIT_ASSIGN_OR_RETURN(const std::string found, FindFolder(folder));
  ImageSet set;
  PLAIT_ASSIGN_OR_RETURN(set.train, ReadSplit(found, kTrainImages, kTrainLabels));
  PLAIT_ASSIGN_OR_RETURN(set.test, ReadSplit(found, kTestImages, kTestLabels));
  if (set.train.rows != set.test.rows || set.train.columns != set.test.columns) {
    return absl::InvalidArgumentError(absl::StrCat(found, ": training images of ", set.train.rows, " x ",
                                                   set.train.columns, ", test images of ", set.test.rows,
                                                   " x ", set.test.columns, "; take one set's files"));
  }
  set.class_names = NumberedClasses(set);
  set.source = absl::StrCat("IDX files in ", found);
  return set;
}

const std::vector<std::string>& FashionMnistClassNames() {
  static const auto* const names =
      new std::vector<std::string>{"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                   "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
  return *names;
}

}  // namespace plait::data
