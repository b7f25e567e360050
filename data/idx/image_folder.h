// A folder of IDX files in memory: MNIST, Fashion-MNIST, and other sets of the same file names.
//
//   PLAIT_ASSIGN_OR_RETURN(ImageSet set, ReadImageFolder("/data/mnist"));
//
//   DIR/train-images-idx3-ubyte     DIR/train-labels-idx1-ubyte
//   DIR/t10k-images-idx3-ubyte      DIR/t10k-labels-idx1-ubyte       each also with .gz
//
// "train-images.idx3-ubyte" and the like are accepted too. The files may also be in DIR/raw or DIR/MNIST/raw, where
// torchvision puts them.
#ifndef PLAIT_DATA_IDX_IMAGE_FOLDER_H_
#define PLAIT_DATA_IDX_IMAGE_FOLDER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/idx/image_set.h"

namespace plait::data {

// Class names are numbers: ten, or as many as the labels need. Errors of ReadIdxSplit; NotFound, listing the expected
// names, without training images; FailedPrecondition if another file is missing; InvalidArgument if training and test
// images differ in size. Local.
absl::StatusOr<ImageSet> ReadImageFolder(const std::string& folder);

// "T-shirt/top", "Trouser", ...: the ten of Xiao, Rasul, Vollgraf, arXiv:1708.07747.
const std::vector<std::string>& FashionMnistClassNames();

}  // namespace plait::data

#endif  // PLAIT_DATA_IDX_IMAGE_FOLDER_H_
