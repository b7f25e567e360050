// Folders of JPEG and PNG files, one per class.
//
//   DIR/train/CLASS/*.jpg    DIR/val/CLASS/*.jpg (or test/)
//   DIR/CLASS/*.jpg                                one folder: a tenth of the files, by a hash of their names, is
//                                                  for testing
#ifndef PLAIT_DATA_IMAGES_CLASS_FOLDERS_H_
#define PLAIT_DATA_IMAGES_CLASS_FOLDERS_H_

#include <string>

#include "absl/status/statusor.h"
#include "data/images/image_source.h"

namespace plait::data {

// Classes are the folders' names in order. Files are found now and decoded by Read; names that end neither in .jpg,
// .jpeg nor .png, in any case, are left alone. The scale is ImageNet's. NotFound: no folders, no files;
// InvalidArgument: a class of val that train lacks. Local.
absl::StatusOr<ImageSets> FindClassFolders(const std::string& folder);

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_CLASS_FOLDERS_H_
