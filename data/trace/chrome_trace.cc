#include "data/trace/chrome_trace.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "data/hdf5/atomic_file.h"
#include "nlohmann/json.hpp"

namespace plait::data {
namespace {

// Seconds per second between two measurements. No clock drifts that much: a larger change is a measurement error, as
// occurs in short traces.
constexpr double kLargestDrift = 0.1;

// As a JSON string; bytes that are not UTF-8 become U+FFFD.
std::string JsonText(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// A span as it is written: on the clock of the trace.
struct Span {
  std::int64_t begin_ns;
  std::int64_t end_ns;
  const TraceEvent* event;
  bool waiting = false;  // the last part of the event, in which the program stood still
};

// Earlier first, and the enclosing one before those inside it.
std::vector<Span> SortedSpans(const RankEvents& rank) {
  std::vector<Span> spans;
  spans.reserve(2 * rank.events.size());
  for (const TraceEvent& event : rank.events) {
    const Span& whole = spans.emplace_back(
        Span{OnTraceClock(rank, event.begin_ns), OnTraceClock(rank, event.end_ns), &event});
    const std::int64_t waited = std::min(event.arguments.waited_ns, event.end_ns - event.begin_ns);
    if (waited <= 0) continue;
    spans.push_back(Span{OnTraceClock(rank, event.end_ns - waited), whole.end_ns, &event, true});
  }
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    if (a.event->track != b.event->track) return a.event->track < b.event->track;
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  return spans;
}

// Where one rank took part in something common.
struct Part {
  std::uint64_t link;
  int rank;
  std::int32_t track;
  std::int64_t begin_ns;
  std::int64_t end_ns;
  bool sends;
};

std::vector<Part> PartsOf(absl::Span<const RankEvents> ranks) {
  std::vector<Part> parts;
  for (const RankEvents& rank : ranks) {
    for (const TraceEvent& event : rank.events) {
      if (event.arguments.link == 0) continue;
      parts.push_back({event.arguments.link, rank.rank, event.track, OnTraceClock(rank, event.begin_ns),
                       OnTraceClock(rank, event.end_ns), event.arguments.sends});
    }
  }
  // By link; within a link the rank that entered last is at the end.
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    if (a.link != b.link) return a.link < b.link;
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.rank < b.rank;
  });
  return parts;
}

// Display order: "main" on top, then by name, so that the tracks of a mesh axis are adjacent.
std::vector<std::size_t> TracksInOrder(const RankEvents& rank) {
  std::vector<std::size_t> order(rank.tracks.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (a == 0 || b == 0) return a == 0 && b != 0;
    return rank.tracks[a] < rank.tracks[b];
  });
  return order;
}

// The arguments that are set: "step":7,"waited_ms":0.250000.
std::string ArgumentsText(const RankEvents& rank, const TraceArguments& arguments) {
  std::string text;
  const auto add = [&text](const char* name, std::int64_t value, const std::string& shown) {
    if (value >= 0) absl::StrAppend(&text, text.empty() ? "" : ",", "\"", name, "\":", shown);
  };
  add("step", arguments.step, absl::StrCat(arguments.step));
  add("bytes", arguments.bytes, absl::StrCat(arguments.bytes));
  add("sequence", arguments.sequence, absl::StrCat(arguments.sequence));
  add("stage", arguments.stage, absl::StrCat(arguments.stage));
  add("micro_batch", arguments.micro_batch, absl::StrCat(arguments.micro_batch));
  // A span recorded before SetUnits has no name.
  const bool named = arguments.unit >= 0 && arguments.unit < std::ssize(rank.units);
  if (arguments.unit >= 0) {
    add("unit", arguments.unit, named ? JsonText(rank.units[arguments.unit]) : absl::StrCat(arguments.unit));
  }
  const std::int64_t waited = arguments.waited_ns;
  add("waited_ms", waited, absl::StrFormat("%d.%06d", waited / 1'000'000, waited % 1'000'000));
  return text;
}

class TraceWriter {
 public:
  TraceWriter(const std::string& path, std::int64_t zero_ns) : out_(path), zero_ns_(zero_ns) {
    out_ << "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  }

  void WriteNames(const RankEvents& rank) {
    const std::string name = rank.host.empty() ? absl::StrCat("rank ", rank.rank)
                                               : absl::StrCat("rank ", rank.rank, " (", rank.host, ")");
    WriteMeta(rank.rank, 0, "process_name", absl::StrCat("\"name\":", JsonText(name)));
    WriteMeta(rank.rank, 0, "process_sort_index", absl::StrCat("\"sort_index\":", rank.rank));
    const std::vector<std::size_t> order = TracksInOrder(rank);
    for (std::size_t place = 0; place < order.size(); ++place) {
      const std::size_t track = order[place];
      WriteMeta(rank.rank, track, "thread_name", absl::StrCat("\"name\":", JsonText(rank.tracks[track])));
      WriteMeta(rank.rank, track, "thread_sort_index", absl::StrCat("\"sort_index\":", place));
    }
  }

  void WriteSpans(const RankEvents& rank) {
    for (const Span& span : SortedSpans(rank)) {
      const TraceEvent& event = *span.event;
      Begin();
      out_ << absl::StrFormat(R"({"ph":"X","name":%s,"pid":%d,"tid":%d,"ts":%s,"dur":%s,"args":{%s}})",
                              span.waiting ? "\"waiting\"" : JsonText(rank.names[event.name]), rank.rank,
                              event.track, Microseconds(span.begin_ns - zero_ns_),
                              Microseconds(span.end_ns - span.begin_ns),
                              span.waiting ? "" : ArgumentsText(rank, event.arguments));
    }
  }

  void WriteCounts(const RankEvents& rank) {
    for (const TraceCount& count : rank.counts) {
      Begin();
      out_ << absl::StrFormat(R"({"ph":"C","name":%s,"pid":%d,"ts":%s,"args":{"value":%.9g}})",
                              JsonText(rank.names[count.name]), rank.rank,
                              Microseconds(OnTraceClock(rank, count.at_ns) - zero_ns_), count.value);
    }
  }

  // From the rank that entered last to all that entered before and ended after that.
  void WriteArrows(absl::Span<const Part> parts) {
    const auto sender = std::find_if(parts.begin(), parts.end(), [](const Part& part) { return part.sends; });
    const Part& from = sender == parts.end() ? parts.back() : *sender;
    for (const Part& part : parts) {
      if (part.rank == from.rank || part.end_ns < from.begin_ns) continue;
      ++arrows_;
      const char* name = from.sends ? "message" : "waits for";
      WriteArrowEnd("\"s\"", name, from, from.begin_ns);
      WriteArrowEnd("\"f\",\"bp\":\"e\"", name, part, part.end_ns);
    }
  }

  absl::Status Finish(const std::map<std::string, std::string>& information) {
    out_ << "\n], \"otherData\": {";
    for (auto it = information.begin(); it != information.end(); ++it) {
      out_ << (it == information.begin() ? "" : ", ") << JsonText(it->first) << ": " << JsonText(it->second);
    }
    out_ << "}}\n";
    out_.close();
    if (out_.good()) return absl::OkStatus();
    return absl::ErrnoToStatus(errno == 0 ? EIO : errno, "cannot be written");
  }

 private:
  void Begin() {
    out_ << (first_ ? "\n" : ",\n");
    first_ = false;
  }
  static std::string Microseconds(std::int64_t ns) {
    return absl::StrFormat("%d.%03d", ns / 1000, ns % 1000);
  }
  void WriteMeta(int rank, std::int64_t track, const char* kind, const std::string& argument) {
    Begin();
    out_ << absl::StrFormat(R"({"ph":"M","name":"%s","pid":%d,"tid":%d,"args":{%s}})", kind, rank, track,
                            argument);
  }
  void WriteArrowEnd(const char* phase, const char* name, const Part& part, std::int64_t at_ns) {
    Begin();
    out_ << absl::StrFormat(R"({"ph":%s,"cat":"link","name":"%s","id":%d,"pid":%d,"tid":%d,"ts":%s})", phase,
                            name, arrows_, part.rank, part.track, Microseconds(at_ns - zero_ns_));
  }

  std::ofstream out_;
  std::int64_t zero_ns_;
  std::int64_t arrows_ = 0;
  bool first_ = true;
};

std::int64_t EarliestNs(absl::Span<const RankEvents> ranks) {
  std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
  for (const RankEvents& rank : ranks) {
    for (const TraceEvent& event : rank.events)
      earliest = std::min(earliest, OnTraceClock(rank, event.begin_ns));
    for (const TraceCount& count : rank.counts)
      earliest = std::min(earliest, OnTraceClock(rank, count.at_ns));
  }
  return earliest == std::numeric_limits<std::int64_t>::max() ? 0 : earliest;
}

absl::Status WriteTo(const std::string& path, absl::Span<const RankEvents> ranks,
                     const std::map<std::string, std::string>& information) {
  TraceWriter writer(path, EarliestNs(ranks));
  for (const RankEvents& rank : ranks) writer.WriteNames(rank);
  for (const RankEvents& rank : ranks) writer.WriteSpans(rank);
  for (const RankEvents& rank : ranks) writer.WriteCounts(rank);
  const std::vector<Part> parts = PartsOf(ranks);
  for (std::size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
    while (end < parts.size() && parts[end].link == parts[begin].link) ++end;
    writer.WriteArrows(absl::MakeConstSpan(parts).subspan(begin, end - begin));
  }
  return writer.Finish(information);
}

}  // namespace

std::int64_t OnTraceClock(const RankEvents& rank, std::int64_t ns) {
  const double span = rank.moments_seconds[1] - rank.moments_seconds[0];
  const double change = rank.offsets_seconds[1] - rank.offsets_seconds[0];
  // With a single measurement, its offset is used throughout.
  const double since = 1e-9 * static_cast<double>(ns) - rank.moments_seconds[0];
  double share = 0;
  if (span > 0) share = std::abs(change) <= kLargestDrift * span ? since / span : 0.5;
  return ns + std::llround(1e9 * (rank.offsets_seconds[0] + share * change));
}

absl::Status WriteChromeTrace(const std::string& path, absl::Span<const RankEvents> ranks,
                              const std::map<std::string, std::string>& run) {
  std::map<std::string, std::string> information = run;
  for (const RankEvents& rank : ranks) {
    if (rank.dropped > 0)
      information[absl::StrCat("events_dropped_rank_", rank.rank)] = absl::StrCat(rank.dropped);
  }
  return WriteAtomically(path, 0,
                         [&](const std::string& partial) { return WriteTo(partial, ranks, information); });
}

}  // namespace plait::data
