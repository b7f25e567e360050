#include "data/har/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// The text of a file, taken line by line.
class LineReader {
 public:
  LineReader(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {
    while (!text_.empty() && (IsBlank(text_.back()) || text_.back() == '\n')) text_.pop_back();
  }

  bool Next(absl::string_view& line) {
    if (position_ >= text_.size()) return false;
    const std::size_t end = std::min(text_.find('\n', position_), text_.size());
    const std::size_t length = end - position_;
    line = absl::string_view(text_).substr(position_, length);
    position_ += length + 1;
    ++number_;
    return true;
  }

  std::int64_t number() const { return number_; }
  const std::string& path() const { return path_; }

  absl::Status Error(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ":", number_, ": ", what));
  }

 private:
  std::string path_;
  std::string text_;
  std::size_t position_ = 0;
  std::int64_t number_ = 0;
};

std::string Quoted(const char* begin, const char* end) {
  const char* stop = begin;
  while (stop != end && !IsBlank(*stop) && stop - begin < 24) ++stop;
  return absl::StrCat("\"", absl::string_view(begin, stop - begin), "\"");
}

// The numbers of one line; `add` takes each. Returns how many there were.
template <typename Number, typename Add>
absl::StatusOr<std::int64_t> ParseNumbers(const LineReader& lines, absl::string_view line, const char* kind,
                                          Add add) {
  const char* at = line.data();
  const char* end = at + line.size();
  std::int64_t count = 0;
  while (true) {
    while (at != end && IsBlank(*at)) ++at;
    if (at == end) return count;
    Number value{};
    const std::from_chars_result parsed = std::from_chars(at, end, value);
    const bool whole = parsed.ec == std::errc() && (parsed.ptr == end || IsBlank(*parsed.ptr));
    if (!whole || !std::isfinite(static_cast<double>(value))) {
      return lines.Error(
          absl::StrCat("expected ", kind, " in column ", count + 1, ", found ", Quoted(at, end)));
    }
    add(count++, value);
    at = parsed.ptr;
  }
}

// Reads a signal file into channel `channel` of x, which is sized by the first file and must match the others.
absl::Status ReadSignal(LineReader lines, std::int64_t channel, SequenceSplit& split) {
  constexpr std::int64_t kSample = kHarSteps * kHarChannels;
  absl::string_view line;
  while (lines.Next(line)) {
    const std::size_t base = (lines.number() - 1) * kSample;
    if (channel == 0) split.x.resize(base + kSample);
    if (base >= split.x.size()) continue;  // the number of lines is compared below
    float* sample = split.x.data() + base + channel;
    PLAIT_ASSIGN_OR_RETURN(
        const std::int64_t count,
        ParseNumbers<float>(lines, line, "a finite number", [&](std::int64_t step, float value) {
          if (step < kHarSteps) sample[step * kHarChannels] = value;
        }));
    if (count != kHarSteps) {
      return lines.Error(absl::StrCat("expected ", kHarSteps, " numbers, found ", count));
    }
  }
  const std::int64_t expected = split.x.size() / kSample;
  if (lines.number() == expected && expected > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      lines.path(), ": expected ", expected == 0 ? "at least one line" : absl::StrCat(expected, " lines"),
      expected == 0 ? "" : " as in the other files", ", found ", lines.number()));
}

absl::StatusOr<std::vector<std::int64_t>> ReadIntegers(LineReader lines, const char* kind, std::int64_t first,
                                                       std::int64_t last, std::int64_t expected) {
  const std::string expectation = absl::StrCat("a ", kind, " ", first, "..", last);
  std::vector<std::int64_t> values;
  absl::string_view line;
  while (lines.Next(line)) {
    std::int64_t value = 0;
    PLAIT_ASSIGN_OR_RETURN(
        const std::int64_t count,
        ParseNumbers<std::int64_t>(lines, line, expectation.c_str(),
                                   [&](std::int64_t, std::int64_t number) { value = number; }));
    if (count != 1) return lines.Error(absl::StrCat("expected ", expectation, ", found ", count, " numbers"));
    if (value < first || value > last)
      return lines.Error(absl::StrCat("expected ", expectation, ", found ", value));
    values.push_back(value);
  }
  if (static_cast<std::int64_t>(values.size()) == expected) return values;
  return absl::InvalidArgumentError(absl::StrCat(lines.path(), ": expected ", expected,
                                                 " lines, one for each line of the signals, found ",
                                                 values.size()));
}

std::string SignalPath(const std::string& folder, const std::string& split, const std::string& channel) {
  return absl::StrCat(folder, "/", split, "/Inertial Signals/", channel, "_", split, ".txt");
}

std::string ListPath(const std::string& folder, const std::string& split, const char* list) {
  return absl::StrCat(folder, "/", split, "/", list, "_", split, ".txt");
}

}  // namespace

const std::vector<std::string>& HarChannelNames() {
  static const auto* const names =
      new std::vector<std::string>{"body_acc_x",  "body_acc_y",  "body_acc_z",  "body_gyro_x", "body_gyro_y",
                                   "body_gyro_z", "total_acc_x", "total_acc_y", "total_acc_z"};
  return *names;
}

const std::vector<std::string>& HarClassNames() {
  static const auto* const names = new std::vector<std::string>{
      "WALKING", "WALKING_UPSTAIRS", "WALKING_DOWNSTAIRS", "SITTING", "STANDING", "LAYING"};
  return *names;
}

absl::StatusOr<std::string> FindHarFolder(const std::string& folder) {
  for (const std::string& candidate : {folder, folder + "/UCI HAR Dataset"}) {
    if (fs::is_directory(candidate + "/train") && fs::is_directory(candidate + "/test")) return candidate;
  }
  return absl::NotFoundError(absl::StrCat(
      folder,
      ": no UCI HAR data here: expected the folders train and test, or \"UCI HAR Dataset\" with them"));
}

std::vector<std::string> HarTextFiles(const std::string& folder) {
  std::vector<std::string> files;
  for (const std::string split : {"train", "test"}) {
    for (const std::string& channel : HarChannelNames()) files.push_back(SignalPath(folder, split, channel));
    files.push_back(ListPath(folder, split, "y"));
    files.push_back(ListPath(folder, split, "subject"));
  }
  return files;
}

absl::StatusOr<SequenceSplit> ReadHarSplit(const std::string& folder, const std::string& name,
                                           const ReadText& read) {
  SequenceSplit split{kHarSteps, kHarChannels, {}, {}, {}};
  for (std::int64_t channel = 0; channel < kHarChannels; ++channel) {
    const std::string path = SignalPath(folder, name, HarChannelNames()[channel]);
    PLAIT_ASSIGN_OR_RETURN(std::string text, read(path));
    PLAIT_RETURN_IF_ERROR(ReadSignal({path, std::move(text)}, channel, split));
  }
  const std::int64_t samples = split.x.size() / (kHarSteps * kHarChannels);
  const std::string labels = ListPath(folder, name, "y"), subjects = ListPath(folder, name, "subject");
  PLAIT_ASSIGN_OR_RETURN(std::string text, read(labels));
  PLAIT_ASSIGN_OR_RETURN(split.y, ReadIntegers({labels, std::move(text)}, "label", 1, kHarClasses, samples));
  for (std::int64_t& label : split.y) --label;
  absl::StatusOr<std::string> list = read(subjects);
  split.subject.assign(samples, 0);
  if (absl::IsNotFound(list.status())) return split;
  PLAIT_RETURN_IF_ERROR(list.status());
  PLAIT_ASSIGN_OR_RETURN(split.subject,
                         ReadIntegers({subjects, *std::move(list)}, "subject", 1, 30, samples));
  return split;
}

absl::StatusOr<SequenceSet> ReadHarText(const std::string& folder) {
  PLAIT_ASSIGN_OR_RETURN(const std::string found, FindHarFolder(folder));
  const ReadText read = [](const std::string& path) { return ReadWholeFile(path); };
  SequenceSet set;
  PLAIT_ASSIGN_OR_RETURN(set.train, ReadHarSplit(found, "train", read));
  PLAIT_ASSIGN_OR_RETURN(set.test, ReadHarSplit(found, "test", read));
  set.class_names = HarClassNames();
  set.source = absl::StrCat("UCI HAR text files in ", found);
  return set;
}

}  // namespace plait::data
