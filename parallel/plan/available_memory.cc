#include "parallel/plan/available_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace plait::parallel {
namespace {

struct LimitFiles {
  const char *limit, *used, *used_file_pages;
};
constexpr LimitFiles kVersion2 = {"memory.max", "memory.current", "inactive_file"};
constexpr LimitFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

// The number in a file that holds one; "max" is none.
std::optional<std::int64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  std::int64_t number = 0;
  if (!(file >> word) || !absl::SimpleAtoi(word, &number)) return std::nullopt;
  return number;
}

// Of "key number" lines, and of "key: number kB".
std::optional<std::int64_t> NumberOf(const std::string& path, absl::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, unit;
    std::int64_t number = 0;
    if (!(words >> name >> number) || name != key) continue;
    return words >> unit && unit == "kB" ? number * 1024 : number;
  }
  return std::nullopt;
}

void TakeLimit(const std::string& folder, const LimitFiles& files, NodeMemory& memory) {
  const std::string file = absl::StrCat(folder, "/", files.limit);
  const auto limit = NumberIn(file), used = NumberIn(absl::StrCat(folder, "/", files.used));
  if (!limit || !used) return;
  const std::int64_t given_up = NumberOf(folder + "/memory.stat", files.used_file_pages).value_or(0);
  const std::int64_t left = std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, *used - given_up));
  if (memory.bytes >= 0 && memory.bytes <= left) return;
  memory = {.bytes = left, .limited_by = file};
}

// The cgroup's folder below `root`, and its ancestors. In a container this path may not be visible; its own limits are
// then at the root.
void TakeLimits(const std::string& root, std::string group, const LimitFiles& files, NodeMemory& memory) {
  while (!group.empty() && group != "/") {
    TakeLimit(root + group, files, memory);
    group.resize(group.rfind('/'));
  }
  TakeLimit(root, files, memory);
}

}  // namespace

NodeMemory AvailableMemory(const std::string& proc, const std::string& cgroup) {
  NodeMemory memory;
  if (const auto available = NumberOf(proc + "/meminfo", "MemAvailable:")) {
    memory = {.bytes = *available, .limited_by = "MemAvailable"};
  }
  std::ifstream groups(proc + "/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/user.slice" or "5:cpu,memory:/job_7"
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || parts[2].empty() || parts[2][0] != '/') continue;
    if (parts[1].empty()) TakeLimits(cgroup, parts[2], kVersion2, memory);
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (std::count(controllers.begin(), controllers.end(), "memory") > 0) {
      TakeLimits(cgroup + "/memory", parts[2], kVersion1, memory);
    }
  }
  return memory;
}

}  // namespace plait::parallel
