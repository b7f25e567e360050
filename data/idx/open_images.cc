#include "data/idx/open_images.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/idx/image_folder.h"
#include "data/idx/synthetic_images.h"

namespace plait::data {
namespace {

constexpr std::uint64_t kSyntheticSeed = 1;

ImageSet StandIn(const ImageOptions& options) {
  return SyntheticImages(options.synthetic_train_samples, options.synthetic_test_samples, kSyntheticSeed);
}

absl::StatusOr<ImageSet> FromPackage(const std::string& folder) {
  PLAIT_ASSIGN_OR_RETURN(ImageSet set, ReadImageFolder(folder));
  if (set.class_names.size() != FashionMnistClassNames().size()) {
    return absl::InvalidArgumentError(absl::StrCat(folder, ": ", set.class_names.size(),
                                                   " classes, but Fashion-MNIST has 10; install the package "
                                                   "dataset-fashion-mnist again"));
  }
  set.class_names = FashionMnistClassNames();
  set.source = absl::StrCat("Fashion-MNIST (Debian package dataset-fashion-mnist) in ", folder);
  return set;
}

}  // namespace

absl::StatusOr<ImageSet> OpenImages(const ImageOptions& options) {
  if (!options.data_dir.empty() && options.synthetic) {
    return absl::InvalidArgumentError("a data folder and synthetic data are both asked for: choose one");
  }
  if (options.synthetic) return StandIn(options);
  if (!options.data_dir.empty()) return ReadImageFolder(options.data_dir);
  std::error_code ignored;
  if (std::filesystem::is_directory(options.package_dir, ignored)) return FromPackage(options.package_dir);
  ImageSet stand_in = StandIn(options);
  absl::StrAppend(&stand_in.source,
                  " (no images found: give a folder of IDX files, or install dataset-fashion-mnist)");
  return stand_in;
}

}  // namespace plait::data
