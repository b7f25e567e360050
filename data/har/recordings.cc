#include "data/har/recordings.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/har/filter.h"
#include "data/har/text.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/checked_array.h"

namespace plait::data {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is read as it lies in memory");

struct Header {
  char magic[8];
  std::uint32_t version, recordings;
  std::uint64_t rows;
  double acc_unit, gyro_unit, sample_rate_hz;
  std::uint32_t checksum, zero;
};
static_assert(sizeof(Header) == 56);

struct Entry {
  std::uint32_t subject, number;
  std::uint64_t rows;
};
static_assert(sizeof(Entry) == 16);

constexpr char kMagic[] = "PLTHAPT1";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kFields = 7;
constexpr double kAccUnit = 1.0 / 720.0;
constexpr double kGyroUnit = 0.0175 * std::numbers::pi / 180.0;
constexpr double kSampleRateHz = 50;

using Row = std::array<std::int16_t, kFields>;

absl::Status Damaged(const std::string& path, const std::string& what) {
  return absl::DataLossError(
      absl::StrCat(path, ": ", what, "; remove it and run data/har/fetch_recordings.py"));
}

absl::StatusOr<Header> CheckedHeader(const std::string& path, absl::string_view bytes) {
  Header header;
  if (bytes.size() < sizeof(header) || std::memcmp(bytes.data(), kMagic, 8) != 0) {
    return Damaged(path, "not a recordings file");
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.version != kVersion) {
    return Damaged(path, absl::StrCat("recordings format ", header.version, ", expected ", kVersion));
  }
  const std::uint64_t table = sizeof(header) + header.recordings * sizeof(Entry);
  // Compares rows, as the number of bytes might overflow 64 bits.
  if (bytes.size() < table || (bytes.size() - table) % sizeof(Row) != 0 ||
      (bytes.size() - table) / sizeof(Row) != header.rows) {
    return Damaged(path, absl::StrCat("expected ", header.recordings, " recordings of ", header.rows,
                                      " rows together, found ", bytes.size(), " bytes"));
  }
  const absl::string_view payload = bytes.substr(sizeof(header));
  if (Crc32(payload.data(), std::ssize(payload)) != header.checksum)
    return Damaged(path, "checksum does not match");
  // The checksum does not cover them.
  const std::pair<double, double> numbers[] = {
      {header.acc_unit, kAccUnit}, {header.gyro_unit, kGyroUnit}, {header.sample_rate_hz, kSampleRateHz}};
  for (const auto& [found, expected] : numbers) {
    if (found != expected)
      return Damaged(path, absl::StrCat("a unit or rate of ", found, ", expected ", expected));
  }
  if (header.zero != 0) return Damaged(path, "the last field of its header is not 0");
  return header;
}

Recording Decode(const Header& header, const Entry& entry, const char* rows) {
  Recording recording;
  recording.subject = entry.subject;
  for (std::vector<double>& signal : recording.signal) signal.resize(entry.rows);
  recording.label.resize(entry.rows);
  for (std::uint64_t i = 0; i < entry.rows; ++i) {
    Row row;
    std::memcpy(row.data(), rows + i * sizeof(Row), sizeof(Row));
    for (int k = 0; k < 6; ++k)
      recording.signal[k][i] = row[k] * (k < 3 ? header.acc_unit : header.gyro_unit);
    recording.label[i] = row[6];
  }
  return recording;
}

template <typename T>
void AppendBytes(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

bool IsTestSubject(std::int64_t subject) {
  constexpr std::array<std::int64_t, 9> kTest = {2, 4, 9, 10, 12, 13, 18, 20, 24};
  return std::find(kTest.begin(), kTest.end(), subject) != kTest.end();
}

void AddWindow(const std::array<std::vector<double>, 9>& signals, std::size_t begin, std::int64_t label,
               std::int64_t subject, SequenceSplit& split) {
  for (std::size_t i = begin; i < begin + kHarSteps; ++i) {
    for (const std::vector<double>& signal : signals) split.x.push_back(static_cast<float>(signal[i]));
  }
  split.y.push_back(label);
  split.subject.push_back(subject);
}

}  // namespace

absl::StatusOr<Recordings> ReadRecordings(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path));
  PLAIT_ASSIGN_OR_RETURN(const Header header, CheckedHeader(path, bytes));
  Recordings recordings{header.sample_rate_hz, header.checksum, {}};
  const char* rows = bytes.data() + sizeof(Header) + header.recordings * sizeof(Entry);
  const char* const end = bytes.data() + bytes.size();
  for (std::uint32_t i = 0; i < header.recordings; ++i) {
    Entry entry;
    std::memcpy(&entry, bytes.data() + sizeof(Header) + i * sizeof(Entry), sizeof(Entry));
    if (entry.rows > static_cast<std::uint64_t>(end - rows) / sizeof(Row)) {
      return Damaged(path, "its table names more rows than it has");
    }
    recordings.all.push_back(Decode(header, entry, rows));
    rows += entry.rows * sizeof(Row);
  }
  return recordings;
}

absl::Status WriteRecordings(const std::string& path, const Recordings& recordings) {
  std::string payload, rows;
  std::uint64_t row_count = 0;
  for (std::size_t n = 0; n < recordings.all.size(); ++n) {
    const Recording& recording = recordings.all[n];
    AppendBytes(payload, Entry{static_cast<std::uint32_t>(recording.subject), static_cast<std::uint32_t>(n),
                               recording.label.size()});
    row_count += recording.label.size();
    for (std::size_t i = 0; i < recording.label.size(); ++i) {
      Row row;
      for (int k = 0; k < 6; ++k)
        row[k] = std::lround(recording.signal[k][i] / (k < 3 ? kAccUnit : kGyroUnit));
      row[6] = recording.label[i];
      AppendBytes(rows, row);
    }
  }
  payload += rows;
  Header header{{},
                kVersion,
                static_cast<std::uint32_t>(recordings.all.size()),
                row_count,
                kAccUnit,
                kGyroUnit,
                recordings.sample_rate_hz,
                Crc32(payload.data(), std::ssize(payload)),
                0};
  std::memcpy(header.magic, kMagic, sizeof(header.magic));
  std::string bytes;
  AppendBytes(bytes, header);
  bytes += payload;
  return WriteWholeFile(path, bytes);
}

std::array<std::vector<double>, 9> HarSignals(const Recording& recording, double sample_rate_hz) {
  const Filter noise = ButterworthLowPass(3, 20.0, sample_rate_hz);
  const Filter gravity = ButterworthLowPass(3, 0.3, sample_rate_hz);
  std::array<std::vector<double>, 9> signals;
  for (int axis = 0; axis < 3; ++axis) {
    std::vector<double>& total = signals[6 + axis] = Apply(noise, MedianOfThree(recording.signal[axis]));
    signals[3 + axis] = Apply(noise, MedianOfThree(recording.signal[3 + axis]));
    std::vector<double>& body = signals[axis] = Apply(gravity, total);
    for (std::size_t i = 0; i < total.size(); ++i) body[i] = total[i] - body[i];
  }
  return signals;
}

SequenceSet WindowsOf(const Recordings& recordings) {
  SequenceSet set;
  for (SequenceSplit* split : {&set.train, &set.test}) {
    split->steps = kHarSteps;
    split->channels = kHarChannels;
  }
  set.class_names = HarClassNames();
  set.source = "windows derived from the HAPT recordings (not the UCI HAR files)";
  for (const Recording& recording : recordings.all) {
    const std::array<std::vector<double>, 9> signals = HarSignals(recording, recordings.sample_rate_hz);
    SequenceSplit& split = IsTestSubject(recording.subject) ? set.test : set.train;
    const std::vector<std::int16_t>& label = recording.label;
    for (std::size_t begin = 0, end = 0; begin < label.size(); begin = end) {
      while (end < label.size() && label[end] == label[begin]) ++end;
      if (label[begin] < 1 || label[begin] > kHarClasses) continue;
      for (std::size_t first = begin; first + kHarSteps <= end; first += kHarSteps / 2) {
        AddWindow(signals, first, label[begin] - 1, recording.subject, split);
      }
    }
  }
  return set;
}

}  // namespace plait::data
