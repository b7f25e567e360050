// Images ready for training: found and read into memory.
//
//   PLAIT_ASSIGN_OR_RETURN(ImageSet set, OpenImages({.data_dir = flag_data_dir}));
//   std::cout << "Data: " << set.description() << "\n";       // says "synthetic" where it is
//
// What is taken, in this order:
//   1. data_dir, if given: a folder of IDX files (image_folder.h). Nothing else is tried;
//   2. Fashion-MNIST from Debian's package dataset-fashion-mnist, if it is installed;
//   3. synthetic images (synthetic_images.h).
#ifndef PLAIT_DATA_IDX_OPEN_IMAGES_H_
#define PLAIT_DATA_IDX_OPEN_IMAGES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "data/idx/image_set.h"

namespace plait::data {

// Where the package dataset-fashion-mnist puts its files.
inline constexpr char kFashionMnistFolder[] = "/usr/share/datasets/fashion-mnist";

struct ImageOptions {
  std::string data_dir = "";
  std::string package_dir = kFashionMnistFolder;
  bool synthetic = false;  // always use synthetic images; not with data_dir
  std::int64_t synthetic_train_samples = 6000;
  std::int64_t synthetic_test_samples = 1000;
};

// Every rank calls it independently; the same files give the same set. Errors of ReadImageFolder, also if the package's
// folder exists but is damaged; InvalidArgument if data_dir and synthetic are both given. Local.
absl::StatusOr<ImageSet> OpenImages(const ImageOptions& options);

}  // namespace plait::data

#endif  // PLAIT_DATA_IDX_OPEN_IMAGES_H_
