#include "data/images/image_source.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace plait::data {
namespace {

double FourDigits(double value) { return std::round(value * 1e4) / 1e4; }

// As many as `samples`, evenly spaced among the first `of`.
class Some final : public ImageSource {
 public:
  Some(std::shared_ptr<const ImageSource> source, std::int64_t samples, std::int64_t of)
      : source_(std::move(source)), samples_(samples), of_(of) {}
  std::int64_t samples() const override { return samples_; }
  std::int64_t label(std::int64_t index) const override { return source_->label(PlaceOf(index)); }
  absl::StatusOr<Image> Read(std::int64_t index) const override { return source_->Read(PlaceOf(index)); }

 private:
  std::int64_t PlaceOf(std::int64_t index) const { return index * of_ / samples_; }

  std::shared_ptr<const ImageSource> source_;
  std::int64_t samples_, of_;
};

class GreyImages final : public ImageSource {
 public:
  explicit GreyImages(ImageSplit split) : split_(std::move(split)) {}
  std::int64_t samples() const override { return split_.samples(); }
  std::int64_t label(std::int64_t index) const override { return split_.labels[index]; }
  absl::StatusOr<Image> Read(std::int64_t index) const override {
    PLAIT_CHECK(index >= 0 && index < samples()) << index << " of " << samples();
    const auto begin = split_.images.begin() + index * split_.pixels();
    return Image{split_.rows, split_.columns, 1, {begin, begin + split_.pixels()}};
  }

 private:
  ImageSplit split_;
};

}  // namespace

std::string ImageSets::description() const { return synthetic ? "synthetic stand-in: " + source : source; }

std::shared_ptr<const ImageSource> FirstOf(std::shared_ptr<const ImageSource> source, std::int64_t samples) {
  if (source->samples() <= samples) return source;
  return std::make_shared<Some>(std::move(source), samples, samples);
}

std::shared_ptr<const ImageSource> SpacedOf(std::shared_ptr<const ImageSource> source, std::int64_t samples) {
  const std::int64_t all = source->samples();
  return all <= samples ? source : std::make_shared<Some>(std::move(source), samples, all);
}

absl::StatusOr<ChannelScale> ScaleOf(const ImageSource& source, std::int64_t channels, std::int64_t at_most) {
  // Integer sums: exact for up to 2^47 pixels.
  std::vector<std::uint64_t> sums(channels, 0), squares(channels, 0);
  std::uint64_t count = 0;
  for (std::int64_t i = 0; i < std::min(source.samples(), at_most); ++i) {
    PLAIT_ASSIGN_OR_RETURN(const Image image, source.Read(i));
    count += image.rows * image.columns;
    for (std::size_t at = 0; at < image.pixels.size(); ++at) {
      const std::uint64_t pixel = image.pixels[at];
      sums[at % channels] += pixel;
      squares[at % channels] += pixel * pixel;
    }
  }
  PLAIT_CHECK(count > 0) << "no images";
  ChannelScale scale;
  for (std::int64_t c = 0; c < channels; ++c) {
    const double mean = sums[c] / static_cast<double>(count);
    const double variance = squares[c] / static_cast<double>(count) - mean * mean;
    const double deviation = FourDigits(std::sqrt(std::max(variance, 0.0)) / 255);
    scale.mean.push_back(FourDigits(mean / 255));
    scale.deviation.push_back(variance > 0 ? std::max(deviation, 1e-4) : 1.0);
  }
  return scale;
}

ImageSets FromGreyImages(ImageSet set) {
  const PixelScale scale = ScaleOf(set.train);
  ImageSets sets;
  sets.scale = {{FourDigits(scale.mean)}, {std::max(FourDigits(scale.standard_deviation), 1e-4)}};
  sets.rows = set.train.rows;
  sets.columns = set.train.columns;
  sets.channels = 1;
  sets.class_names = std::move(set.class_names);
  sets.source = std::move(set.source);
  sets.synthetic = set.synthetic;
  sets.train = std::make_shared<GreyImages>(std::move(set.train));
  sets.test = std::make_shared<GreyImages>(std::move(set.test));
  return sets;
}

}  // namespace plait::data
