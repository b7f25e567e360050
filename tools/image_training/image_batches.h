// Batches of labelled images as tensors, and the test of a classifier on them: what train_cnn and train_vit share.
//
//   PLAIT_ASSIGN_OR_RETURN(const data::ImageSets sets,
//                          AgreeOnImages(std::move(opened), /*max_samples=*/0, "--data", run.world));
//   ImageBatches train(sets.train, {.size = 224, .scale = sets.scale}, at::kFloat);
//   const models::Batch batch = train.Make(indices, epoch);
//   PLAIT_ASSIGN_OR_RETURN(const TestResult result, TestImages(trainer, run, test, 100));
#ifndef PLAIT_TOOLS_IMAGE_TRAINING_IMAGE_BATCHES_H_
#define PLAIT_TOOLS_IMAGE_TRAINING_IMAGE_BATCHES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "comm/communicator.h"
#include "data/images/image_source.h"
#include "data/images/transform.h"
#include "models/block_model.h"
#include "tools/training/trainer.h"

namespace plait::image_training {

// Collective over `world`. Returns this rank's `opened`, cut to the first `max_samples` of both parts, of class
// folders to as many evenly spaced ones (0: all). An error on one rank is an error on all, and begins with `flag` unless that is empty. INVALID_ARGUMENT without training
// or test samples.
absl::StatusOr<data::ImageSets> AgreeOnImages(absl::StatusOr<data::ImageSets> opened,
                                              std::int64_t max_samples, const std::string& flag,
                                              const comm::Communicator& world);

// "Data: CIFAR-10 in ...: 50000 training and 10000 test images of 32 x 32, 10 classes; pixels - 0.4914/0.4822/0.4465,
// divided by 0.2470/..."
std::string DataLine(const data::ImageSets& sets);

// Local. A fact about the data of a run (tools/training/resume.h).
std::string LabelsDigest(const data::ImageSource& source);

// Local. Facts about the test images, for training::TrainingTask::shared_facts().
training::NamedValues TestFacts(const data::ImageSets& sets);

// Local.
class ImageBatches {
 public:
  ImageBatches(std::shared_ptr<const data::ImageSource> source, const data::TransformOptions& options,
               at::ScalarType type)
      : source_(std::move(source)), transform_(options), type_(type) {}

  // Inputs (samples, channels, rows, columns), targets (samples) int64. Without a resizing transform (size 0) all
  // images must have the size of the first. An image that cannot be read is zero and has target -1: see status().
  models::Batch Make(absl::Span<const std::int64_t> indices, std::int64_t epoch = 0);

  std::int64_t samples() const { return source_->samples(); }
  // The first error of Make on this rank.
  const absl::Status& status() const { return status_; }

 private:
  std::shared_ptr<const data::ImageSource> source_;
  data::ImageTransform transform_;
  at::ScalarType type_;
  absl::Status status_;
};

struct TestResult {
  double loss = 0;      // mean of the cross entropies
  double accuracy = 0;  // per cent
};

// Collective. Evaluates every sample once, for any number of ranks, `batch_size` per rank at a time; in the last turn a
// rank may have fewer samples or none. The model's output is logits or log-softmax. Targets of -1 add nothing to the
// sums, which are divided by `samples`. OUT_OF_RANGE if the loss is not finite: an argmax of NaNs is class 0.
absl::StatusOr<TestResult> TestClassifier(
    training::Trainer& trainer, const training::Run& run, std::int64_t samples, std::int64_t batch_size,
    const std::function<models::Batch(absl::Span<const std::int64_t> indices)>& make);

// The same for images. The first error of reading on any rank, the same on all ranks.
absl::StatusOr<TestResult> TestImages(training::Trainer& trainer, const training::Run& run,
                                      ImageBatches& test, std::int64_t batch_size);

}  // namespace plait::image_training

#endif  // PLAIT_TOOLS_IMAGE_TRAINING_IMAGE_BATCHES_H_
