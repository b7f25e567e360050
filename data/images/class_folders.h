// Folders of JPEG and PNG files, one per class.
//
//   DIR/train/CLASS/*.jpg    DIR/val/CLASS/*.jpg (or test/)
//   DIR/CLASS/*.jpg                                without a split: a tenth of the files, by a hash of CLASS/NAME,
//                                                  is for testing
#ifndef PLAIT_DATA_IMAGES_CLASS_FOLDERS_H_
#define PLAIT_DATA_IMAGES_CLASS_FOLDERS_H_

#include <string>

#include "absl/status/statusor.h"
#include "data/images/image_source.h"

namespace plait::data {

// Classes are the folders' names in order. Lists the files now; Read decodes them. Only names that end in .jpg, .jpeg
// or .png, in upper or lower case, are used. The scale is ImageNet's mean and deviation. NotFound: no images for
// training or none for testing; InvalidArgument: a class of val that train does not have. Local.
absl::StatusOr<ImageSets> FindClassFolders(const std::string& folder);

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_CLASS_FOLDERS_H_
