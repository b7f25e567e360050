#include "data/safetensors/header.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace plait::data::safetensors {
namespace {

// For nlohmann::json::sax_parse; afterwards status() is the error, or header() has all entries, in the order of the
// text, with offsets not yet checked.
class HeaderEvents final : public nlohmann::json_sax<nlohmann::json> {
 public:
  const absl::Status& status() const { return status_; }
  Header& header() { return header_; }

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { return Unexpected("a negative number"); }
  bool number_unsigned(number_unsigned_t value) override;
  bool number_float(number_float_t, const string_t&) override { return Unexpected("no 64-bit integer"); }
  bool string(string_t& text) override;
  bool binary(binary_t&) override { return Unexpected("binary data"); }
  bool start_object(std::size_t) override;
  bool key(string_t& text) override;
  bool end_object() override;
  bool start_array(std::size_t) override;
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override;

 private:
  enum class Place { kStart, kRoot, kMetadata, kTensor, kNumbers, kEnd };
  bool Unexpected(const std::string& found);
  bool Refuse(const std::string& problem);
  std::string Where() const;
  bool BeginTensor();

  absl::Status status_;
  Header header_;
  Place place_ = Place::kStart;
  std::string name_;   // of the tensor, or "__metadata__"
  std::string field_;  // last key inside it
  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_set<std::string> fields_;
  std::vector<std::int64_t> numbers_;
};

constexpr absl::string_view kMetadataKey = "__metadata__";

bool IsTensorField(absl::string_view field) {
  return field == "dtype" || field == "shape" || field == "data_offsets";
}

bool HeaderEvents::Refuse(const std::string& problem) {
  status_ = absl::DataLossError(problem);
  return false;
}

std::string HeaderEvents::Where() const {
  switch (place_) {
    case Place::kStart:
    case Place::kEnd:
      return "the header";
    case Place::kRoot:
      return Quoted(name_);
    case Place::kMetadata:
      return absl::StrCat(kMetadataKey, " ", Quoted(field_));
    case Place::kTensor:
    case Place::kNumbers:
      break;
  }
  return absl::StrCat("tensor ", Quoted(name_), ": ", field_);
}

bool HeaderEvents::Unexpected(const std::string& found) {
  std::string expected = "a JSON object";
  if (place_ == Place::kMetadata) expected = "a string";
  if (place_ == Place::kNumbers) expected = "integers from 0 to 2^63 - 1";
  if (place_ == Place::kTensor) expected = field_ == "dtype" ? "a string" : "a list of numbers";
  return Refuse(absl::StrCat(Where(), " is ", found, ", expected ", expected));
}

bool HeaderEvents::number_unsigned(number_unsigned_t value) {
  if (place_ != Place::kNumbers) return Unexpected("a number");
  if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
    return Unexpected("a number beyond 2^63 - 1");
  }
  numbers_.push_back(static_cast<std::int64_t>(value));
  return true;
}

bool HeaderEvents::string(string_t& text) {
  if (place_ == Place::kMetadata) {
    header_.metadata[field_] = std::move(text);
    return true;
  }
  if (place_ != Place::kTensor || field_ != "dtype") return Unexpected("a string");
  const auto dtype = DTypeNamed(text);
  if (!dtype) {
    return Refuse(absl::StrCat("tensor ", Quoted(name_), ": unknown dtype ", Quoted(text),
                               ", expected one of ", DTypeNames()));
  }
  header_.entries.back().info.dtype = *dtype;
  return true;
}

bool HeaderEvents::start_object(std::size_t) {
  if (place_ == Place::kStart) {
    place_ = Place::kRoot;
    return true;
  }
  if (place_ != Place::kRoot) return Unexpected("an object");
  fields_.clear();
  if (name_ == kMetadataKey) {
    place_ = Place::kMetadata;
    return true;
  }
  place_ = Place::kTensor;
  header_.entries.push_back({.name = name_, .info = {}});
  return true;
}

bool HeaderEvents::key(string_t& text) {
  if (place_ == Place::kRoot) {
    name_ = text;
    if (names_.insert(text).second) return true;
    return Refuse(absl::StrCat("duplicate name ", Quoted(text)));
  }
  field_ = text;
  if (!fields_.insert(text).second) {
    return Refuse(
        absl::StrCat(Quoted(name_), " has the key ", Quoted(text), " twice, expected every key once"));
  }
  if (place_ == Place::kMetadata || IsTensorField(text)) return true;
  return Refuse(absl::StrCat("tensor ", Quoted(name_), " has the key ", Quoted(text),
                             ", expected dtype, shape and data_offsets only"));
}

bool HeaderEvents::end_object() {
  if (place_ == Place::kRoot) {
    place_ = Place::kEnd;
    return true;
  }
  if (place_ == Place::kTensor && fields_.size() != 3) {
    return Refuse(
        absl::StrCat("tensor ", Quoted(name_), " is incomplete, expected dtype, shape and data_offsets"));
  }
  place_ = Place::kRoot;
  return true;
}

bool HeaderEvents::start_array(std::size_t) {
  if (place_ != Place::kTensor || field_ == "dtype") return Unexpected("a list");
  place_ = Place::kNumbers;
  numbers_.clear();
  return true;
}

bool HeaderEvents::end_array() {
  place_ = Place::kTensor;
  Header::Entry& entry = header_.entries.back();
  if (field_ == "shape") {
    entry.info.shape = numbers_;
    return true;
  }
  if (numbers_.size() != 2) {
    return Refuse(absl::StrCat(Where(), " has ", numbers_.size(), " numbers, expected begin and end"));
  }
  entry.begin = numbers_[0];
  entry.end = numbers_[1];
  return true;
}

bool HeaderEvents::parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) {
  return Refuse(
      absl::StrCat("the header is not JSON at its byte ", position, ", expected a JSON object in UTF-8"));
}

absl::Status CheckSize(const Header::Entry& entry) {
  const absl::StatusOr<std::int64_t> bytes = ByteCount(entry.info);
  if (!bytes.ok()) {
    return absl::DataLossError(absl::StrCat("tensor ", Quoted(entry.name), ": ", bytes.status().message()));
  }
  if (entry.begin <= entry.end && entry.end - entry.begin == *bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("tensor ", Quoted(entry.name), ": data_offsets [", entry.begin,
                                          ", ", entry.end, "], expected ", *bytes, " bytes for ",
                                          TextOf(entry.info)));
}

// Entries lie sorted: each must begin where the one before ends.
absl::Status CheckPlaces(const std::vector<Header::Entry>& entries, std::int64_t data_bytes) {
  std::int64_t reached = 0;
  for (const Header::Entry& entry : entries) {
    PLAIT_RETURN_IF_ERROR(CheckSize(entry));
    if (entry.begin != reached) {
      return absl::DataLossError(
          absl::StrCat("tensor ", Quoted(entry.name), ": data_offsets [", entry.begin, ", ", entry.end, "] ",
                       entry.begin < reached ? "overlap another tensor" : "leave a hole",
                       ", expected to begin at ", reached));
    }
    reached = entry.end;
  }
  if (reached == data_bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(data_bytes, " bytes of data, expected ", reached,
                                          reached > data_bytes ? ": the file is cut short" : ""));
}

// The parser takes a zero byte for the end of the text, and skips a leading byte order mark and white space.
absl::Status CheckEnds(absl::string_view json) {
  if (json.empty() || json.front() != '{') {
    return absl::DataLossError(
        "the header does not begin with '{', expected a JSON object: not safetensors?");
  }
  const std::size_t zero = json.find('\0');
  if (zero == absl::string_view::npos) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the header is not JSON at its byte ", zero + 1,
                                          ", a zero, expected a JSON object in UTF-8"));
}

absl::StatusOr<std::string> JsonText(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", absl::CEscape(text), "\" is not UTF-8: safetensors cannot hold it"));
  }
}

absl::Status AppendMetadata(const Metadata& metadata, std::string* out) {
  if (metadata.empty()) return absl::OkStatus();
  absl::string_view separator = "\"__metadata__\":{";
  for (const auto& [key, value] : metadata) {
    PLAIT_ASSIGN_OR_RETURN(const std::string key_text, JsonText(key));
    PLAIT_ASSIGN_OR_RETURN(const std::string value_text, JsonText(value));
    absl::StrAppend(out, separator, key_text, ":", value_text);
    separator = ",";
  }
  absl::StrAppend(out, "}");
  return absl::OkStatus();
}

absl::Status AppendEntry(const Header::Entry& entry, std::string* out) {
  PLAIT_ASSIGN_OR_RETURN(const std::string name, JsonText(entry.name));
  absl::StrAppend(out, name, ":{\"dtype\":\"", NameOf(entry.info.dtype), "\",\"shape\":[",
                  absl::StrJoin(entry.info.shape, ","), "],\"data_offsets\":[", entry.begin, ",", entry.end,
                  "]}");
  return absl::OkStatus();
}

absl::Status CheckNames(const std::vector<Header::Entry>& entries) {
  absl::flat_hash_set<absl::string_view> names = {"__metadata__"};
  for (const Header::Entry& entry : entries) {
    if (names.insert(entry.name).second) continue;
    return absl::InvalidArgumentError(absl::StrCat("the name ", Quoted(entry.name),
                                                   entry.name == "__metadata__"
                                                       ? " is the format's own, expected another"
                                                       : " is given twice, expected every name once"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Header> ParseHeader(absl::string_view json, std::int64_t data_bytes) {
  PLAIT_RETURN_IF_ERROR(CheckEnds(json));
  HeaderEvents events;
  const bool parsed = nlohmann::json::sax_parse(json.begin(), json.end(), &events);
  PLAIT_RETURN_IF_ERROR(events.status());
  if (!parsed) return absl::DataLossError("the header is not JSON, expected a JSON object in UTF-8");
  Header header = std::move(events.header());
  std::sort(header.entries.begin(), header.entries.end(), [](const Header::Entry& a, const Header::Entry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  PLAIT_RETURN_IF_ERROR(CheckPlaces(header.entries, data_bytes));
  return header;
}

absl::StatusOr<std::string> HeaderText(const Header& header) {
  PLAIT_RETURN_IF_ERROR(CheckNames(header.entries));
  std::string text = "{";
  PLAIT_RETURN_IF_ERROR(AppendMetadata(header.metadata, &text));
  for (const Header::Entry& entry : header.entries) {
    if (text.size() > 1) text += ',';
    PLAIT_RETURN_IF_ERROR(AppendEntry(entry, &text));
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() <= static_cast<std::size_t>(kMaxHeaderBytes)) return text;
  return absl::InvalidArgumentError(absl::StrCat("names and metadata need a header of ", text.size(),
                                                 " bytes, expected at most ", kMaxHeaderBytes));
}

}  // namespace plait::data::safetensors
