#include "data/idx/synthetic_images.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/seed.h"

namespace plait::data {
namespace {

constexpr std::int64_t kSide = 28;
constexpr int kClasses = 10;

// Ends of a stroke; x to the right, y down, the digit in [-0.5, 0.5] x [-1, 1].
struct Segment {
  double x0, y0, x1, y1;
};

// Clockwise from the top, then the middle one: bits 0..6 of kLit.
constexpr std::array<Segment, 7> kSegments = {{
    {-0.5, -1, 0.5, -1},
    {0.5, -1, 0.5, 0},
    {0.5, 0, 0.5, 1},
    {-0.5, 1, 0.5, 1},
    {-0.5, 0, -0.5, 1},
    {-0.5, -1, -0.5, 0},
    {-0.5, 0, 0.5, 0},
}};
constexpr std::array<int, kClasses> kLit = {0x3f, 0x06, 0x5b, 0x4f, 0x66, 0x6d, 0x7d, 0x07, 0x7f, 0x6f};

// How one sample is drawn, in pixels.
struct Hand {
  double centre_x, centre_y, size, slant, stroke, brightness;
};

double Between(base::RandomStream& random, double low, double high) {
  return low + (high - low) * random.Uniform();
}

Hand RandomHand(base::RandomStream& random) {
  Hand hand;
  hand.centre_x = Between(random, 11, 16);
  hand.centre_y = Between(random, 11, 16);
  hand.size = Between(random, 7, 9.5);
  hand.slant = Between(random, -0.25, 0.25);
  hand.stroke = Between(random, 1, 2);
  hand.brightness = Between(random, 150, 255);
  return hand;
}

double DistanceTo(const Segment& segment, double x, double y) {
  const double dx = segment.x1 - segment.x0, dy = segment.y1 - segment.y0;
  const double along = ((x - segment.x0) * dx + (y - segment.y0) * dy) / (dx * dx + dy * dy);
  const double t = std::clamp(along, 0.0, 1.0);
  const double from_x = x - (segment.x0 + t * dx), from_y = y - (segment.y0 + t * dy);
  return std::sqrt(from_x * from_x + from_y * from_y);
}

// Brightness of a pixel, 0 to 1: full within the stroke, none from a pixel beyond it.
double Ink(int digit, const Hand& hand, double column, double row) {
  const double y = (row - hand.centre_y) / hand.size;
  const double x = (column - hand.centre_x) / hand.size + hand.slant * y;
  double nearest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < kSegments.size(); ++i) {
    if (kLit[digit] >> i & 1) nearest = std::min(nearest, DistanceTo(kSegments[i], x, y));
  }
  return std::clamp(1 + hand.stroke - nearest * hand.size, 0.0, 1.0);
}

void AddImage(int digit, base::RandomStream& random, std::vector<std::uint8_t>& images) {
  constexpr double kNoise = 60;
  const Hand hand = RandomHand(random);
  for (std::int64_t row = 0; row < kSide; ++row) {
    for (std::int64_t column = 0; column < kSide; ++column) {
      const double noise = Between(random, 0, kNoise);
      const double grey = hand.brightness * Ink(digit, hand, column, row) + noise;
      images.push_back(static_cast<std::uint8_t>(std::min(grey, 255.0)));
    }
  }
}

ImageSplit MakeSplit(std::int64_t samples, base::RandomStream random) {
  ImageSplit split{kSide, kSide, {}, {}};
  for (std::int64_t i = 0; i < samples; ++i) {
    split.labels.push_back(i % kClasses);
    AddImage(i % kClasses, random, split.images);
  }
  return split;
}

}  // namespace

ImageSet SyntheticImages(std::int64_t train_samples, std::int64_t test_samples, std::uint64_t seed) {
  ImageSet set;
  set.train = MakeSplit(train_samples, base::RandomStream(base::DeriveSeed(seed, "synthetic images train")));
  set.test = MakeSplit(test_samples, base::RandomStream(base::DeriveSeed(seed, "synthetic images test")));
  for (int digit = 0; digit < kClasses; ++digit) set.class_names.push_back(absl::StrCat(digit));
  set.source = absl::StrCat("drawn digits, seed ", seed, ", no handwriting");
  set.synthetic = true;
  return set;
}

}  // namespace plait::data
