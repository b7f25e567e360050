#include "data/video/synthetic_videos.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/seed.h"

namespace plait::data {
namespace {

constexpr int kMostClasses = 8;
constexpr std::array<const char*, kMostClasses> kNames = {"right", "down-right", "down", "down-left",
                                                          "left",  "up-left",    "up",   "up-right"};

// Lengths are in sides of the picture.
struct Disc {
  double row, column, radius;
};

class MovingDiscs final : public VideoSource {
 public:
  MovingDiscs(std::string split, std::int64_t videos, const SyntheticVideoOptions& options)
      : split_(std::move(split)), videos_(videos), options_(options) {}

  std::int64_t videos() const override { return videos_; }
  std::int64_t label(std::int64_t index) const override { return index % options_.classes; }
  std::string name(std::int64_t index) const override {
    return absl::StrFormat("synthetic/%s/%s-%04d", kNames[DirectionOf(index)], split_, index);
  }
  absl::StatusOr<std::string> Fingerprint(std::int64_t) const override {
    return absl::StrCat("discs 1, seed ", options_.seed, ", ", options_.classes, " classes");
  }
  absl::StatusOr<Clip> Read(std::int64_t index, const ClipOptions& clip_options) const override {
    base::RandomStream random(base::DeriveSeed(base::DeriveSeed(options_.seed, split_), "video",
                                               static_cast<std::uint64_t>(index)));
    const std::int64_t all = clip_options.frames, half = (all + 1) / 2;
    Clip clip = {half + static_cast<std::int64_t>(random.Below(all - half + 1)), clip_options.size, {}};
    clip.pixels.reserve(clip.frames * clip.size * clip.size * 3);
    const double angle = 2 * M_PI * DirectionOf(index) / kMostClasses, reach = 0.25 + 0.15 * random.Uniform();
    const Disc middle = {0.4 + 0.2 * random.Uniform(), 0.4 + 0.2 * random.Uniform(),
                         0.15 + 0.1 * random.Uniform()};
    for (std::int64_t frame = 0; frame < clip.frames; ++frame) {
      const double way =
          reach * (2.0 * static_cast<double>(frame) / static_cast<double>(all - 1 + (all == 1)) - 1);
      Paint({middle.row + way * std::sin(angle), middle.column + way * std::cos(angle), middle.radius},
            random, clip);
    }
    return clip;
  }

 private:
  int DirectionOf(std::int64_t index) const {
    return static_cast<int>(label(index)) * kMostClasses / options_.classes;
  }

  static void Paint(const Disc& disc, base::RandomStream& random, Clip& clip) {
    const auto side = static_cast<double>(clip.size);
    for (std::int64_t i = 0; i < clip.size; ++i) {
      for (std::int64_t j = 0; j < clip.size; ++j) {
        const double row = (static_cast<double>(i) + 0.5) / side,
                     column = (static_cast<double>(j) + 0.5) / side;
        const bool lit = std::hypot(row - disc.row, column - disc.column) < disc.radius;
        const double noise = 24 * random.Uniform();
        for (const double colour : {column, row, 0.5}) {
          clip.pixels.push_back(static_cast<std::uint8_t>(noise + (lit ? 220 * colour : 0)));
        }
      }
    }
  }

  std::string split_;
  std::int64_t videos_;
  SyntheticVideoOptions options_;
};

}  // namespace

VideoSets SyntheticVideos(const SyntheticVideoOptions& options) {
  PLAIT_CHECK(options.classes >= 1 && options.classes <= kMostClasses) << options.classes << " classes";
  VideoSets sets;
  sets.train = std::make_shared<MovingDiscs>("train", options.train_videos, options);
  sets.test = std::make_shared<MovingDiscs>("test", options.test_videos, options);
  for (int i = 0; i < options.classes; ++i)
    sets.class_names.emplace_back(kNames[i * kMostClasses / options.classes]);
  sets.source = absl::StrCat("discs that move in ", options.classes, " directions");
  sets.synthetic = true;
  return sets;
}

}  // namespace plait::data
