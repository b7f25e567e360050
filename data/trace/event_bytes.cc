// RankEvents as CBOR; the events as they lie in memory, since all ranks run the same program.
#include <cstring>
#include <type_traits>

#include "data/trace/chrome_trace.h"
#include "nlohmann/json.hpp"

namespace plait::data {
namespace {

static_assert(std::is_trivially_copyable_v<TraceEvent>);

bool IndicesFit(const RankEvents& rank) {
  for (const TraceEvent& event : rank.events) {
    if (event.name < 0 || event.name >= static_cast<std::int64_t>(rank.names.size())) return false;
    if (event.track < 0 || event.track >= static_cast<std::int64_t>(rank.tracks.size())) return false;
  }
  return true;
}

void Fill(const nlohmann::json& json, RankEvents& rank) {
  json.at("rank").get_to(rank.rank);
  json.at("host").get_to(rank.host);
  json.at("moments").get_to(rank.moments_seconds);
  json.at("offsets").get_to(rank.offsets_seconds);
  json.at("names").get_to(rank.names);
  json.at("tracks").get_to(rank.tracks);
  json.at("dropped").get_to(rank.dropped);
  const nlohmann::json::binary_t& bytes = json.at("events").get_binary();
  rank.events.resize(bytes.size() / sizeof(TraceEvent));
  if (!rank.events.empty())
    std::memcpy(rank.events.data(), bytes.data(), rank.events.size() * sizeof(TraceEvent));
}

}  // namespace

std::string ToBytes(const RankEvents& rank) {
  const auto* begin = reinterpret_cast<const std::uint8_t*>(rank.events.data());
  const nlohmann::json json = {
      {"rank", rank.rank},
      {"host", rank.host},
      {"moments", rank.moments_seconds},
      {"offsets", rank.offsets_seconds},
      {"names", rank.names},
      {"tracks", rank.tracks},
      {"dropped", rank.dropped},
      {"events", nlohmann::json::binary({begin, begin + rank.events.size() * sizeof(TraceEvent)})}};
  std::string bytes;
  nlohmann::json::to_cbor(json, bytes);
  return bytes;
}

absl::StatusOr<RankEvents> FromBytes(absl::string_view text) {
  RankEvents rank;
  try {
    Fill(nlohmann::json::from_cbor(text.begin(), text.end()), rank);
    if (IndicesFit(rank)) return rank;
  } catch (const nlohmann::json::exception&) {
    // Told below.
  }
  return absl::DataLossError("not trace events: do all ranks run the same build?");
}

}  // namespace plait::data
