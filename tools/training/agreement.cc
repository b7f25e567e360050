#include "tools/training/agreement.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/seed.h"
#include "comm/gathered_text.h"

namespace plait::training {
namespace {

// A line per value, in order; line breaks in values are escaped.
std::string Lines(const NamedValues& values) {
  return absl::StrJoin(values, "\n", [](std::string* out, const auto& value) {
    absl::StrAppend(out, value.first, "=", absl::StrReplaceAll(value.second, {{"\n", "\\n"}}));
  });
}

absl::Status FirstDifference(const std::vector<std::string>& texts) {
  const std::vector<std::string> first = absl::StrSplit(texts[0], '\n');
  for (std::size_t line = 0; line < first.size(); ++line) {
    for (std::size_t rank = 1; rank < texts.size(); ++rank) {
      const std::vector<std::string> other = absl::StrSplit(texts[rank], '\n');
      const std::string there = line < other.size() ? other[line] : "nothing";
      if (there == first[line]) continue;
      const auto flag = [](const std::string& text) {
        return absl::StrCat("--", absl::StrReplaceAll(text.substr(0, text.find('=')), {{"_", "-"}}),
                            text.substr(text.find('=')));
      };
      return absl::InvalidArgumentError(
          absl::StrCat("ranks were started with different flags: ", flag(first[line]), " on rank 0 and ",
                       flag(there), " on rank ", rank, "; start all ranks with the same command line"));
    }
  }
  return absl::InvalidArgumentError("ranks were started with different flags");
}

}  // namespace

absl::Status AgreeOnSettings(const comm::Communicator& world, const NamedValues& mine) {
  const std::string lines = Lines(mine);
  const std::int64_t hash[1] = {static_cast<std::int64_t>(base::DeriveSeed(lines.size(), lines))};
  std::vector<std::int64_t> all(world.size());
  world.AllGather(comm::ConstBufferOf(absl::MakeConstSpan(hash)), comm::BufferOf(absl::MakeSpan(all)));
  if (std::count(all.begin(), all.end(), all[0]) == world.size()) return absl::OkStatus();
  return FirstDifference(comm::GatherText(world, lines));
}

absl::Status AgreeOnFacts(const comm::Communicator& world, const NamedValues& mine) {
  const std::vector<std::string> texts = comm::GatherText(world, Lines(mine));
  const std::vector<std::string> first = absl::StrSplit(texts[0], '\n');
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    const std::vector<std::string> other = absl::StrSplit(texts[rank], '\n');
    for (std::size_t line = 0; line < std::min(first.size(), other.size()); ++line) {
      if (other[line] == first[line]) continue;
      return absl::InvalidArgumentError(absl::StrCat("ranks have different data: ", first[line],
                                                     " on rank 0 and ", other[line], " on rank ", rank,
                                                     "; give all ranks the same files"));
    }
  }
  return absl::OkStatus();
}

}  // namespace plait::training
