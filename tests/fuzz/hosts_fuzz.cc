// Lists of hosts and counts, host files, and the environment of a scheduler: lines NAME=VALUE.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/str_split.h"
#include "comm/launch/host_list.h"
#include "comm/launch/job.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using plait::comm::JobSources;
  const absl::string_view text = plait::fuzz::TextOf(data, size);
  plait::comm::ExpandSlurmHosts(text.substr(0, 64)).status().IgnoreError();
  plait::comm::ExpandSlurmCounts(text.substr(0, 64)).status().IgnoreError();
  plait::comm::ParseHostFile(text, "hosts").status().IgnoreError();
  std::map<std::string, std::string> environment;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<std::string, std::string> setting = absl::StrSplit(line, absl::MaxSplits('=', 1));
    environment.insert_or_assign(setting.first, setting.second.c_str());
  }
  const auto lookup = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
  const auto read_hosts = [](const std::string& file) { return plait::comm::ParseHostFile(file, "hosts"); };
  plait::comm::DetectJob(JobSources{
      .lookup = lookup, .host = "node1", .boot_id = "1", .read_host_file = read_hosts, .ancestors = {}});
  return 0;
}
