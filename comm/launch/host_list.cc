#include "comm/launch/host_list.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace plait::comm {
namespace {

// The largest machines have 160,000.
constexpr std::size_t kMostHosts = 200'000;

absl::Status BadList(absl::string_view list, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("host list ", list, ": ", what, "; expected something like node[01-04,07],login1"));
}

// Splits at commas outside brackets.
absl::StatusOr<std::vector<absl::string_view>> SplitNames(absl::string_view list) {
  std::vector<absl::string_view> names;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    if (c == '[' && inside) return BadList(list, "a bracket within a bracket");
    if (c == ']' && !inside) return BadList(list, "] without [");
    if (c == '[' || c == ']') inside = c == '[';
    if (c != ',' || (inside && i < list.size())) continue;
    if (inside) return BadList(list, "[ without ]");
    if (i == begin) return BadList(list, "an empty name");
    names.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  return names;
}

bool IsNumber(absl::string_view text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isdigit(c); });
}

// "001-003" is 001 002 003: as wide as its first number is written.
absl::Status AddRange(absl::string_view list, absl::string_view range, std::vector<std::string>& numbers) {
  const std::vector<absl::string_view> ends = absl::StrSplit(range, '-');
  if (ends.size() > 2 || !IsNumber(ends.front()) || !IsNumber(ends.back())) {
    return BadList(list, absl::StrCat(range, " is no number and no range"));
  }
  int first = 0, last = 0;
  if (!absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last) || last < first) {
    return BadList(list, absl::StrCat(range, " runs backwards"));
  }
  if (numbers.size() + static_cast<std::size_t>(last - first) >= kMostHosts)
    return BadList(list, "too many hosts");
  for (int number = first; number <= last; ++number) {
    const std::string digits = absl::StrCat(number);
    const std::size_t width = std::max(ends.front().size(), digits.size());
    numbers.push_back(std::string(width - digits.size(), '0') + digits);
  }
  return absl::OkStatus();
}

// One name with any number of brackets, the last one running fastest.
absl::Status AddName(absl::string_view list, absl::string_view name, std::vector<std::string>& hosts) {
  std::vector<std::string> expanded = {""};
  while (!name.empty()) {
    const std::size_t open = std::min(name.find('['), name.size());
    for (std::string& host : expanded) absl::StrAppend(&host, name.substr(0, open));
    name.remove_prefix(open);
    if (name.empty()) break;
    const std::size_t close = name.find(']');
    std::vector<std::string> numbers;
    for (const absl::string_view range : absl::StrSplit(name.substr(1, close - 1), ',')) {
      PLAIT_RETURN_IF_ERROR(AddRange(list, range, numbers));
    }
    if (numbers.size() * expanded.size() > kMostHosts) return BadList(list, "too many hosts");
    std::vector<std::string> longer;
    for (const std::string& host : expanded) {
      for (const std::string& number : numbers) longer.push_back(host + number);
    }
    expanded = std::move(longer);
    name.remove_prefix(close + 1);
  }
  if (hosts.size() + expanded.size() > kMostHosts) return BadList(list, "too many hosts");
  hosts.insert(hosts.end(), std::make_move_iterator(expanded.begin()),
               std::make_move_iterator(expanded.end()));
  return absl::OkStatus();
}

bool ReadSlots(absl::string_view text, int* slots) { return absl::SimpleAtoi(text, slots) && *slots > 0; }

// "slots = 4" as "slots=4": Open MPI reads both.
std::string WithoutBlanksAroundEquals(absl::string_view line) {
  std::vector<absl::string_view> parts = absl::StrSplit(line, '=');
  for (absl::string_view& part : parts) part = absl::StripAsciiWhitespace(part);
  return absl::StrJoin(parts, "=");
}

// "host", "host:4", "host slots=4 max_slots=8".
bool ParseHostLine(absl::string_view text, HostSlots* entry) {
  const std::string line = WithoutBlanksAroundEquals(text);
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  const std::vector<absl::string_view> parts = absl::StrSplit(words[0], absl::MaxSplits(':', 1));
  entry->host = std::string(parts[0]);
  if (entry->host.empty() || (parts.size() == 2 && !ReadSlots(parts[1], &entry->slots))) return false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    absl::string_view value = words[i];
    if (absl::ConsumePrefix(&value, "slots=")) {
      if (!ReadSlots(value, &entry->slots)) return false;
    } else if (!absl::ConsumePrefix(&value, "max_slots=") && !absl::ConsumePrefix(&value, "max-slots=")) {
      return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandSlurmHosts(absl::string_view list) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<absl::string_view> names, SplitNames(list));
  std::vector<std::string> hosts;
  for (const absl::string_view name : names) PLAIT_RETURN_IF_ERROR(AddName(list, name, hosts));
  return hosts;
}

absl::StatusOr<std::vector<int>> ExpandSlurmCounts(absl::string_view counts) {
  std::vector<int> expanded;
  for (absl::string_view entry : absl::StrSplit(counts, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(entry, absl::MaxSplits("(x", 1));
    int count = 0, times = 1;
    bool good = ReadSlots(parts[0], &count);
    if (good && parts.size() == 2) {
      absl::string_view repeated = parts[1];
      good = absl::ConsumeSuffix(&repeated, ")") && ReadSlots(repeated, &times);
    }
    if (!good || expanded.size() + static_cast<std::size_t>(times) > kMostHosts) {
      return absl::InvalidArgumentError(
          absl::StrCat("counts per node ", counts, ": ", entry, " is none; expected something like 4(x2),1"));
    }
    expanded.insert(expanded.end(), times, count);
  }
  return expanded;
}

absl::StatusOr<std::vector<HostSlots>> ParseHostFile(absl::string_view text, absl::string_view name) {
  std::vector<HostSlots> hosts;
  std::unordered_map<std::string, std::size_t> places;  // by host
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    HostSlots entry;
    if (!ParseHostLine(line, &entry)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ":", number, ": expected a host, host:4 or host slots=4, found ", line));
    }
    const auto [place, is_new] = places.emplace(entry.host, hosts.size());
    if (is_new) {
      hosts.push_back(entry);
    } else if (__builtin_add_overflow(hosts[place->second].slots, entry.slots, &hosts[place->second].slots)) {
      return absl::InvalidArgumentError(absl::StrCat(name, ":", number, ": too many slots of ", entry.host));
    }
  }
  if (hosts.empty()) return absl::InvalidArgumentError(absl::StrCat(name, ": names no host"));
  return hosts;
}

absl::StatusOr<std::vector<HostSlots>> ReadHostFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return ParseHostFile(text, path);
}

}  // namespace plait::comm
