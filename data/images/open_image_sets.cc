#include "data/images/open_image_sets.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/idx/image_folder.h"
#include "data/images/cifar10.h"
#include "data/images/class_folders.h"

namespace plait::data {

absl::StatusOr<ImageSets> OpenImageSets(const ImageSetOptions& options) {
  if (options.data == "fake") return FakeImages(options.fake);
  std::error_code error;
  if (!std::filesystem::is_directory(options.data, error)) {
    return absl::NotFoundError(
        absl::StrCat(options.data, ": no such folder; expected fake, or a folder of images"));
  }
  if (HasCifar10(options.data)) return ReadCifar10(options.data);
  absl::StatusOr<ImageSet> grey = ReadImageFolder(options.data);
  if (grey.ok()) return FromGreyImages(*std::move(grey));
  if (grey.status().code() != absl::StatusCode::kNotFound) return grey.status();
  return FindClassFolders(options.data);
}

}  // namespace plait::data
