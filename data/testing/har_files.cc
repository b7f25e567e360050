#include "data/testing/har_files.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "data/har/text.h"
#include "data/hdf5/atomic_file.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;

SequenceSplit SmallSplit(std::int64_t samples, std::int64_t first_label) {
  SequenceSplit split{kHarSteps, kHarChannels, {}, {}, {}};
  for (std::int64_t i = 0; i < samples * kHarSteps * kHarChannels; ++i) {
    split.x.push_back(static_cast<float>(std::sin(0.37 * i + first_label)) * (i % 3 == 0 ? 1e-4f : 1.5f));
  }
  for (std::int64_t i = 0; i < samples; ++i) {
    split.y.push_back((first_label + i) % kHarClasses);
    split.subject.push_back(1 + (7 * i + first_label) % 30);
  }
  return split;
}

// Three digits in the exponent, as the archive was written.
std::string ArchiveNumber(float value) {
  const std::string text = absl::StrFormat("%.8e", value);
  const std::size_t digits = text.size() - 2;
  return absl::StrCat(value < 0 ? " " : "  ", text.substr(0, digits), "0", text.substr(digits));
}

void WriteSplit(const SequenceSplit& split, const std::string& name, const std::string& folder) {
  fs::create_directories(absl::StrCat(folder, "/", name, "/Inertial Signals"));
  std::ofstream y(absl::StrCat(folder, "/", name, "/y_", name, ".txt"));
  std::ofstream subject(absl::StrCat(folder, "/", name, "/subject_", name, ".txt"));
  for (std::int64_t i = 0; i < split.samples(); ++i) {
    y << split.y[i] + 1 << "\n";
    subject << split.subject[i] << "\n";
  }
  for (std::int64_t channel = 0; channel < split.channels; ++channel) {
    std::ofstream signal(
        absl::StrCat(folder, "/", name, "/Inertial Signals/", HarChannelNames()[channel], "_", name, ".txt"));
    for (std::int64_t row = 0; row < split.samples() * split.steps; ++row) {
      signal << ArchiveNumber(split.x[row * split.channels + channel])
             << ((row + 1) % split.steps == 0 ? "\n" : "");
    }
  }
}

}  // namespace

SequenceSet SmallHarSet() {
  SequenceSet set;
  set.train = SmallSplit(3, 0);
  set.test = SmallSplit(3, 3);
  set.class_names = HarClassNames();
  return set;
}

void WriteHarText(const SequenceSet& set, const std::string& folder) {
  WriteSplit(set.train, "train", folder);
  WriteSplit(set.test, "test", folder);
}

Recordings MadeRecordings(int subjects) {
  Recordings recordings{50.0, 0, {}};
  for (int subject = 1; subject <= subjects; ++subject) {
    Recording recording;
    recording.subject = subject;
    const int rows = 300 + 40 * subject;
    for (int label = 1; label <= 7; ++label) {
      for (int i = 0; i < rows; ++i) {
        for (int k = 0; k < 6; ++k) {
          const double swing = std::sin(0.2 * i * (1 + 0.1 * label) + k) + 0.2 * std::sin(2.9 * i + subject);
          const double unit = k < 3 ? 1.0 / 720.0 : 0.0175 * M_PI / 180.0;
          recording.signal[k].push_back(unit * std::round(300 * (swing + (k == 0))));
        }
        recording.label.push_back(i < 52 ? -1 : label);
      }
    }
    recordings.all.push_back(std::move(recording));
  }
  return recordings;
}

std::optional<std::string> RealDataFolder() {
  const char* given = std::getenv("PLAIT_REAL_DATA");
  std::string folder = given == nullptr ? "" : given;
  const char* runfiles = std::getenv("TEST_SRCDIR");
  const char* workspace = std::getenv("TEST_WORKSPACE");
  if (folder.empty() && runfiles != nullptr && workspace != nullptr) {
    std::error_code ignored;
    const fs::path root =
        fs::canonical(absl::StrCat(runfiles, "/", workspace, "/WORKSPACE"), ignored).parent_path();
    folder = (root.parent_path() / "shared" / "data").string();
  }
  if (!folder.empty() && fs::is_directory(folder)) return folder;
  std::cout << "No folder of real data sets: using generated data.\n";
  return std::nullopt;
}

std::optional<std::string> FetchedRecordings() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string root = cache != nullptr ? cache : absl::StrCat(home == nullptr ? "" : home, "/.cache");
  const std::string path = root + "/plait/data/hapt_recordings.bin";
  if (fs::exists(path)) return path;
  std::cout << "No " << path << ": using generated recordings.\n";
  return std::nullopt;
}

std::string Unpack(const std::string& archive) {
  const char* temporary = std::getenv("TEST_TMPDIR");
  const std::string folder = absl::StrCat(temporary == nullptr ? "/tmp" : temporary, "/",
                                          fs::path(archive).filename().string(), ".d");
  fs::create_directories(folder);
  const int failed = std::system(absl::StrCat("tar -xJf '", archive, "' -C '", folder, "'").c_str());
  if (failed != 0) std::cerr << "tar could not unpack " << archive << "\n";
  return folder;
}

}  // namespace plait::data
