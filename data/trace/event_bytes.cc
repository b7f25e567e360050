// RankEvents as CBOR; the events as they lie in memory, since all ranks run the same program.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "data/trace/chrome_trace.h"
#include "nlohmann/json.hpp"

namespace plait::data {
namespace {

nlohmann::json BytesOf(const auto& values) {
  using Value = typename std::decay_t<decltype(values)>::value_type;
  static_assert(std::is_trivially_copyable_v<Value>);
  const auto* begin = reinterpret_cast<const std::uint8_t*>(values.data());
  return nlohmann::json::binary({begin, begin + values.size() * sizeof(Value)});
}

void Fill(const nlohmann::json& json, auto& values) {
  using Value = typename std::decay_t<decltype(values)>::value_type;
  const nlohmann::json::binary_t& bytes = json.get_binary();
  values.resize(bytes.size() / sizeof(Value));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(Value));
}

bool IsIndex(std::int64_t index, const std::vector<std::string>& of) {
  return index >= 0 && index < static_cast<std::int64_t>(of.size());
}

bool IndicesFit(const RankEvents& rank) {
  for (const TraceEvent& event : rank.events) {
    if (!IsIndex(event.name, rank.names) || !IsIndex(event.track, rank.tracks)) return false;
    if (event.arguments.unit != -1 && !IsIndex(event.arguments.unit, rank.units)) return false;
  }
  return std::all_of(rank.counts.begin(), rank.counts.end(),
                     [&rank](const TraceCount& count) { return IsIndex(count.name, rank.names); });
}

void FillRank(const nlohmann::json& json, RankEvents& rank) {
  json.at("rank").get_to(rank.rank);
  json.at("host").get_to(rank.host);
  json.at("moments").get_to(rank.moments_seconds);
  json.at("offsets").get_to(rank.offsets_seconds);
  json.at("names").get_to(rank.names);
  json.at("tracks").get_to(rank.tracks);
  json.at("units").get_to(rank.units);
  json.at("dropped").get_to(rank.dropped);
  Fill(json.at("events"), rank.events);
  Fill(json.at("counts"), rank.counts);
}

}  // namespace

std::string ToBytes(const RankEvents& rank) {
  const nlohmann::json json = {{"rank", rank.rank},
                               {"host", rank.host},
                               {"moments", rank.moments_seconds},
                               {"offsets", rank.offsets_seconds},
                               {"names", rank.names},
                               {"tracks", rank.tracks},
                               {"units", rank.units},
                               {"dropped", rank.dropped},
                               {"events", BytesOf(rank.events)},
                               {"counts", BytesOf(rank.counts)}};
  std::string bytes;
  nlohmann::json::to_cbor(json, bytes);
  return bytes;
}

absl::StatusOr<RankEvents> FromBytes(absl::string_view text) {
  RankEvents rank;
  try {
    FillRank(nlohmann::json::from_cbor(text.begin(), text.end()), rank);
    if (IndicesFit(rank)) return rank;
  } catch (const nlohmann::json::exception&) {
    // The error is returned below.
  }
  return absl::DataLossError("not trace events: do all ranks run the same build?");
}

}  // namespace plait::data
