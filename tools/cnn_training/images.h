// The images of a run on every rank, and batches of them as tensors.
//
//   PLAIT_ASSIGN_OR_RETURN(const Images images, OpenImages(settings, world));
//   const models::Batch batch = MakeBatch(images.set.train, images.scale, indices, at::kFloat);
#ifndef PLAIT_TOOLS_CNN_TRAINING_IMAGES_H_
#define PLAIT_TOOLS_CNN_TRAINING_IMAGES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "comm/communicator.h"
#include "data/idx/image_set.h"
#include "models/block_model.h"
#include "tools/cnn_training/settings.h"

namespace plait::cnn_training {

struct Images {
  data::ImageSet set;      // at most max_samples of each split
  data::PixelScale scale;  // of all training images, to four digits: MNIST's are 0.1307 and 0.3081
};

// Collective. Every rank reads the files; an error that one rank has is an error on all. InvalidArgument for
// data without training or test samples, and for images that are too small for the network.
absl::StatusOr<Images> OpenImages(const CnnSettings& settings, const comm::Communicator& world);

// "Data: Fashion-MNIST from ...: 60000 training and 10000 test images of 28 x 28, 10 classes, ..."
std::string DataLine(const Images& images);

// Inputs (samples, 1, rows, columns); targets (samples), int64.
models::Batch MakeBatch(const data::ImageSplit& split, const data::PixelScale& scale,
                        absl::Span<const std::int64_t> indices, at::ScalarType type);

}  // namespace plait::cnn_training

#endif  // PLAIT_TOOLS_CNN_TRAINING_IMAGES_H_
