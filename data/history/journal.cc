#include "data/history/journal.h"

#include <cstring>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/checked_array.h"

namespace plait::data {
namespace {

constexpr absl::string_view kMagic = "PLTJRNL2";
constexpr absl::string_view kOldMagic = "PLTJRNL1";
constexpr std::uint32_t kLargestRecord = 1 << 24;
constexpr std::int64_t kNoDraw = std::numeric_limits<std::int64_t>::max();  // none follows it

struct Prefix {
  std::uint32_t length, checksum;
};

template <typename T>
void AppendBytes(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Reserves the prefix; Seal fills it in once the record is complete.
void Begin(std::string& record, char kind) { record.assign(sizeof(Prefix), '\0').push_back(kind); }

void Seal(std::string& record) {
  const char* payload = record.data() + sizeof(Prefix);
  const std::uint32_t length = record.size() - sizeof(Prefix);
  const Prefix prefix{length, Crc32(payload, length)};
  std::memcpy(record.data(), &prefix, sizeof(prefix));
}

std::string MetricRecord(std::uint32_t id, const Metric& metric) {
  std::string record;
  Begin(record, 'M');
  AppendBytes(record, id);
  const std::string length = absl::StrCat(metric.length), dimension = DimensionOf(metric),
                    kind = metric.integer ? "i" : "";
  for (const std::string* text :
       {&metric.name, &metric.units, &metric.long_name, &metric.statistic, &dimension, &length, &kind}) {
    record += *text;
    record.push_back('\0');
  }
  Seal(record);
  return record;
}

}  // namespace

std::string JournalPathOf(const std::string& path) { return FileAt(path) + ".journal"; }

absl::StatusOr<JournalWriter> JournalWriter::Open(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(AppendFile file, AppendFile::OpenAtEnd(path));
  PLAIT_RETURN_IF_ERROR(file.Lock());
  return JournalWriter(std::move(file));
}

absl::Status JournalWriter::Restart(absl::Span<const Metric> metrics) {
  std::string bytes(kMagic);
  for (std::uint32_t id = 0; id < metrics.size(); ++id) bytes += MetricRecord(id, metrics[id]);
  readable_ = false;
  PLAIT_RETURN_IF_ERROR(file_.Clear());
  PLAIT_RETURN_IF_ERROR(file_.Write(bytes));
  PLAIT_RETURN_IF_ERROR(file_.Sync());
  readable_ = true;
  return absl::OkStatus();
}

absl::Status JournalWriter::AddMetric(std::uint32_t id, const Metric& metric) {
  return file_.Write(MetricRecord(id, metric));
}

void JournalWriter::BeginDraw(std::int64_t draw) {
  Begin(record_, 'D');
  AppendBytes(record_, draw);
}

void JournalWriter::AddToDraw(std::uint32_t id, absl::Span<const double> numbers) {
  AppendBytes(record_, id);
  record_.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double));
}

absl::Status JournalWriter::EndDraw() {
  if (record_.size() > kLargestRecord) {
    return absl::InvalidArgumentError(
        absl::StrCat(path(), ": a draw of ", record_.size(), " bytes, at most ", kLargestRecord));
  }
  Seal(record_);
  return file_.Write(record_);
}

JournalReader::JournalReader(const std::string& path) : file_(std::fopen(path.c_str(), "rb")) {
  char magic[kMagic.size()];
  if (file_ == nullptr) return;
  const bool whole = std::fread(magic, 1, sizeof(magic), file_) == sizeof(magic);
  const absl::string_view found(magic, sizeof(magic));
  if (whole && (found == kMagic || found == kOldMagic)) return;
  std::fclose(file_);
  file_ = nullptr;
}

JournalReader::~JournalReader() {
  if (file_ != nullptr) std::fclose(file_);
}

bool JournalReader::NextRecord() {
  Prefix prefix;
  if (file_ == nullptr || std::fread(&prefix, sizeof(prefix), 1, file_) != 1) return false;
  if (prefix.length == 0 || prefix.length > kLargestRecord) return false;
  record_.resize(prefix.length);
  return std::fread(record_.data(), 1, prefix.length, file_) == prefix.length &&
         Crc32(record_.data(), prefix.length) == prefix.checksum;
}

// Metrics come in the order of their ids.
bool JournalReader::TakeMetric() {
  std::uint32_t id;
  if (record_[0] != 'M' || record_.size() < 1 + sizeof(id)) return false;
  std::memcpy(&id, record_.data() + 1, sizeof(id));
  const std::vector<std::string> texts = absl::StrSplit(record_.substr(1 + sizeof(id)), '\0');
  if (id != metrics_.size() || texts.size() < 3) return false;
  Metric metric = {texts[0], texts[1], texts[2]};
  if (texts.size() >= 6) {
    metric.statistic = texts[3];
    metric.dimension = texts[4];
    if (!absl::SimpleAtoi(texts[5], &metric.length)) return false;
    metric.integer = texts.size() >= 7 && texts[6] == "i";
  }
  if (!CheckMetricName(metric.name).ok() || metric.length < 0 || metric.length > kLongestVector) return false;
  metrics_.push_back(std::move(metric));
  return true;
}

bool JournalReader::TakeDraw(JournalDraw& draw) {
  absl::string_view rest = absl::string_view(record_).substr(1);
  const auto take = [&rest](void* out, std::size_t bytes) {
    if (rest.size() < bytes) return false;
    std::memcpy(out, rest.data(), bytes);
    rest.remove_prefix(bytes);
    return true;
  };
  draw.ids.clear();
  draw.numbers.clear();
  if (!take(&draw.draw, sizeof(draw.draw)) || draw.draw < 0 || draw.draw == kNoDraw) return false;
  if (next_draw_.has_value() && draw.draw != *next_draw_) return false;
  next_draw_ = draw.draw + 1;
  for (std::uint32_t id; take(&id, sizeof(id));) {
    if (id >= metrics_.size()) return false;
    const std::size_t before = draw.numbers.size(), count = NumbersOf(metrics_[id]);
    if (rest.size() / sizeof(double) < count) return false;
    draw.numbers.resize(before + count);
    take(&draw.numbers[before], count * sizeof(double));
    draw.ids.push_back(id);
  }
  return rest.empty();
}

bool JournalReader::Next(JournalDraw& draw) {
  while (NextRecord()) {
    if (record_[0] == 'D') return TakeDraw(draw);
    if (!TakeMetric()) return false;
  }
  return false;
}

}  // namespace plait::data
