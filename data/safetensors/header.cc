#include "data/safetensors/header.h"

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "data/safetensors/header_events.h"
#include "nlohmann/json.hpp"

namespace plait::data::safetensors {
namespace {

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

// The parser takes a zero byte for the end of the text, and skips a byte order mark and space before it.
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
