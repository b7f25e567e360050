#include "data/images/fake_images.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "base/seed.h"

namespace plait::data {
namespace {

constexpr std::int64_t kFields = 4;  // along each side

class Fake final : public ImageSource {
 public:
  Fake(const FakeImageOptions& options, const char* split, std::int64_t samples)
      : options_(options), seed_(base::DeriveSeed(options.seed, split)), samples_(samples) {}

  std::int64_t samples() const override { return samples_; }

  std::int64_t label(std::int64_t index) const override {
    base::RandomStream stream(base::DeriveSeed(seed_, "label", static_cast<std::uint64_t>(index)));
    return static_cast<std::int64_t>(stream.Below(static_cast<std::uint64_t>(options_.classes)));
  }

  absl::StatusOr<Image> Read(std::int64_t index) const override {
    const std::int64_t side = options_.side, channels = options_.channels;
    // Up to 127, of the class: the same in all splits.
    base::RandomStream of_class(
        base::DeriveSeed(options_.seed, "class", static_cast<std::uint64_t>(label(index))));
    std::vector<std::uint8_t> brightness(kFields * kFields * channels);
    for (std::uint8_t& field : brightness) field = static_cast<std::uint8_t>(of_class.Below(128));
    Image image = {side, side, channels, std::vector<std::uint8_t>(side * side * channels)};
    base::RandomStream noise(base::DeriveSeed(seed_, "noise", static_cast<std::uint64_t>(index)));
    std::uint64_t bits = 0;
    for (std::int64_t at = 0, row = 0; row < side; ++row) {
      for (std::int64_t column = 0; column < side; ++column) {
        const std::int64_t field = row * kFields / side * kFields + column * kFields / side;
        for (std::int64_t c = 0; c < channels; ++c, ++at) {
          bits = at % 8 == 0 ? noise() : bits >> 8;
          image.pixels[at] = static_cast<std::uint8_t>(brightness[field * channels + c] + (bits & 127));
        }
      }
    }
    return image;
  }

 private:
  FakeImageOptions options_;
  std::uint64_t seed_;
  std::int64_t samples_;
};

}  // namespace

ImageSets FakeImages(const FakeImageOptions& options) {
  ImageSets sets;
  sets.train = std::make_shared<Fake>(options, "train", options.train_samples);
  sets.test = std::make_shared<Fake>(options, "test", options.test_samples);
  for (std::int64_t k = 0; k < options.classes; ++k) sets.class_names.push_back(absl::StrCat(k));
  sets.channels = options.channels;
  sets.rows = sets.columns = options.side;
  sets.scale = {std::vector<double>(options.channels, 0.5), std::vector<double>(options.channels, 0.25)};
  sets.source = absl::StrCat("fields of noise, seed ", options.seed);
  sets.synthetic = true;
  return sets;
}

}  // namespace plait::data
