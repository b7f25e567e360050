#include "data/har/synthetic.h"

#include <array>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "base/seed.h"
#include "data/har/text.h"

namespace plait::data {
namespace {

// One class: pace of the steps, strength of movement, direction of gravity (g along x, y, z).
struct Activity {
  double pace_hz, strength;
  std::array<double, 3> gravity;
};

constexpr std::array<Activity, kHarClasses> kActivities = {{
    {2.0, 0.30, {0.95, -0.20, 0.10}},   // walking
    {1.6, 0.25, {0.92, -0.30, -0.05}},  // upstairs
    {2.3, 0.45, {0.94, -0.15, 0.15}},   // downstairs
    {0.3, 0.01, {0.85, 0.20, 0.45}},    // sitting
    {0.3, 0.01, {0.97, -0.15, 0.05}},   // standing
    {0.3, 0.01, {0.05, 0.75, 0.60}},    // laying
}};

void AddWindow(const Activity& activity, base::RandomStream& random, std::vector<float>& x) {
  constexpr double kRateHz = 50.0, kNoise = 0.02;
  const double pace = activity.pace_hz * (1 + 0.1 * random.Normal());
  const double strength = activity.strength * (1 + 0.25 * random.Normal());
  std::array<double, 9> phase;
  for (double& angle : phase) angle = 2 * std::numbers::pi * random.Uniform();
  std::array<double, 3> gravity = activity.gravity;
  for (double& component : gravity) component += 0.12 * random.Normal();
  for (std::int64_t step = 0; step < kHarSteps; ++step) {
    const double angle = 2 * std::numbers::pi * pace * step / kRateHz;
    std::array<double, 9> row;
    for (int axis = 0; axis < 3; ++axis) {
      const double swing = std::sin(angle + phase[axis]) + 0.5 * std::sin(2 * angle + phase[3 + axis]);
      row[axis] = strength * swing + kNoise * random.Normal();
      row[3 + axis] = 2 * strength * std::sin(angle + phase[6 + axis]) + kNoise * random.Normal();
      row[6 + axis] = row[axis] + gravity[axis];
    }
    x.insert(x.end(), row.begin(), row.end());
  }
}

SequenceSplit MakeSplit(std::int64_t samples, base::RandomStream random, std::int64_t first_subject) {
  SequenceSplit split{kHarSteps, kHarChannels, {}, {}, {}};
  for (std::int64_t i = 0; i < samples; ++i) {
    split.y.push_back(i % kHarClasses);
    split.subject.push_back(first_subject + i / kHarClasses % 9);
    AddWindow(kActivities[i % kHarClasses], random, split.x);
  }
  return split;
}

}  // namespace

SequenceSet SyntheticHar(std::int64_t train_samples, std::int64_t test_samples, std::uint64_t seed) {
  SequenceSet set;
  set.train = MakeSplit(train_samples, base::RandomStream(base::DeriveSeed(seed, "synthetic har train")), 1);
  set.test = MakeSplit(test_samples, base::RandomStream(base::DeriveSeed(seed, "synthetic har test")), 10);
  set.class_names = HarClassNames();
  set.source = absl::StrCat("made-up activities, seed ", seed, ", no recording of a person");
  set.synthetic = true;
  return set;
}

}  // namespace plait::data
