// Opens image sets by name: synthetic ones, or a folder in any supported format.
#ifndef PLAIT_DATA_IMAGES_OPEN_IMAGE_SETS_H_
#define PLAIT_DATA_IMAGES_OPEN_IMAGE_SETS_H_

#include <string>

#include "absl/status/statusor.h"
#include "data/images/fake_images.h"
#include "data/images/image_source.h"

namespace plait::data {

struct ImageSetOptions {
  std::string data = "fake";  // "fake" or a folder
  FakeImageOptions fake = {};
};

// "fake": FakeImages. A folder: CIFAR-10 (cifar10.h), IDX files (data/idx), else class folders (class_folders.h).
// Every rank calls it independently; the same files give the same sets. Errors of these readers; NotFound if there is
// no such folder. Local.
absl::StatusOr<ImageSets> OpenImageSets(const ImageSetOptions& options);

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_OPEN_IMAGE_SETS_H_
