#include "comm/launch/supervision/launcher_notes.h"

#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace plait::comm {
namespace {

constexpr std::size_t kDashes = 74;

bool IsRule(absl::string_view line) {
  line = absl::StripTrailingAsciiWhitespace(line);
  return line.size() == kDashes && line.find_first_not_of('-') == line.npos;
}

// Of the first line of a block.
bool TellsOfTheEnd(absl::string_view line) {
  return absl::StartsWith(line, "Primary job  terminated normally, but") ||
         absl::StrContains(line, " detected that one or more processes exited with non-zero status") ||
         absl::StrContains(line, " noticed that process rank ");
}

// "mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 (Killed)."
std::string KilledRank(absl::string_view line) {
  const std::size_t rank = line.find("rank "), end = line.find(" with PID"),
                    how = line.find("exited on signal");
  if (rank == line.npos || end == line.npos || how == line.npos || end < rank) return "";
  const absl::string_view told = absl::StripTrailingAsciiWhitespace(line.substr(how));
  return absl::StrCat(line.substr(rank, end - rank), " ", absl::StripSuffix(told, "."));
}

}  // namespace

void LauncherNotes::TakeLine(absl::string_view line, std::string* passed) {
  if (place_ == Place::kBehindDashes && TellsOfTheEnd(line)) {
    place_ = Place::kInBlock;
    dashes_.clear();
    if (killed_rank_.empty()) killed_rank_ = KilledRank(line);
  } else if (place_ == Place::kInBlock) {
    if (IsRule(line)) place_ = Place::kText;
  } else {
    passed->append(std::exchange(dashes_, ""));
    place_ = IsRule(line) ? Place::kBehindDashes : Place::kText;
    absl::StrAppend(place_ == Place::kBehindDashes ? &dashes_ : passed, line);
  }
}

std::string LauncherNotes::Pass(absl::string_view bytes) {
  std::string passed;
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    const std::size_t taken = newline == bytes.npos ? bytes.size() : newline + 1;
    if (in_line_) {
      absl::StrAppend(&passed, bytes.substr(0, taken));
    } else {
      absl::StrAppend(&line_, bytes.substr(0, taken));
      const bool may_be_theirs = place_ != Place::kText || line_[0] == '-';
      if (newline != bytes.npos || !may_be_theirs) TakeLine(std::exchange(line_, ""), &passed);
    }
    in_line_ = newline == bytes.npos && line_.empty();
    bytes.remove_prefix(taken);
  }
  return passed;
}

std::string LauncherNotes::Rest() {
  place_ = Place::kText;
  return absl::StrCat(std::exchange(dashes_, ""), std::exchange(line_, ""));
}

}  // namespace plait::comm
