#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "data/idx/open_images.h"
#include "tools/cnn_training/cnn_task.h"

namespace plait::cnn_training {
namespace {

// Two convolutions of 3 x 3 and a pool of 2 x 2.
constexpr std::int64_t kSmallestSide = 6;

absl::StatusOr<data::ImageSets> Read(const CnnSettings& settings) {
  PLAIT_ASSIGN_OR_RETURN(data::ImageSet set, data::OpenImages({.data_dir = base::FromUser(settings.data)}));
  return data::FromGreyImages(std::move(set));
}

}  // namespace

absl::StatusOr<data::ImageSets> OpenImages(const CnnSettings& settings, const comm::Communicator& world) {
  PLAIT_ASSIGN_OR_RETURN(data::ImageSets sets,
                         image_training::AgreeOnImages(Read(settings), settings.max_samples,
                                                       settings.data.empty() ? "" : "--data", world));
  if (std::min(sets.rows, sets.columns) >= kSmallestSide) return sets;
  return absl::InvalidArgumentError(
      absl::StrCat("images of ", sets.rows, " x ", sets.columns, ": expected at least 6 x 6"));
}

}  // namespace plait::cnn_training
