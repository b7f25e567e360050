// Images ready for training, by one word: made up, or whatever a folder holds.
#ifndef PLAIT_DATA_IMAGES_OPEN_IMAGE_SETS_H_
#define PLAIT_DATA_IMAGES_OPEN_IMAGE_SETS_H_

#include <string>

#include "absl/status/statusor.h"
#include "data/images/fake_images.h"
#include "data/images/image_source.h"

namespace plait::data {

struct ImageSetOptions {
  std::string data = "fake";  // or a folder
  FakeImageOptions fake = {};
};

// "fake": FakeImages. A folder: CIFAR-10 (cifar10.h), IDX files (data/idx), else class folders (class_folders.h).
// Each rank may call it on its own: the same files give the same sets. Errors of these; NotFound where there is no
// such folder. Local.
absl::StatusOr<ImageSets> OpenImageSets(const ImageSetOptions& options);

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_OPEN_IMAGE_SETS_H_
