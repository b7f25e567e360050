#include "tools/doctor_checks/probe.h"

#include <mpi.h>
#include <netdb.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>

#include <regex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm/gathered_text.h"
#include "comm/launch/clock_offset.h"
#include "comm/launch/dist_info.h"
#include "parallel/plan/available_memory.h"

namespace plait::doctor {
namespace {

std::int64_t FreeBytes(const std::string& folder) {
  struct statvfs status {};
  if (statvfs(folder.c_str(), &status) != 0) return kUnknown;
  return static_cast<std::int64_t>(status.f_bavail) * static_cast<std::int64_t>(status.f_frsize);
}

std::int64_t OpenFilesLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kUnknown;
  return limit.rlim_cur == RLIM_INFINITY ? std::int64_t{1} << 40 : static_cast<std::int64_t>(limit.rlim_cur);
}

std::vector<int> Cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return {0};
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &mask)) cores.push_back(core);
  }
  return cores;
}

std::string Resolve(const std::string& host) {
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, nullptr, &found) != 0 || found == nullptr) return "";
  char address[NI_MAXHOST] = "";
  getnameinfo(found->ai_addr, found->ai_addrlen, address, sizeof address, nullptr, 0, NI_NUMERICHOST);
  freeaddrinfo(found);
  return address;
}

std::string MpiLibrary() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  return MpiVersion(text);
}

std::string MpiOnPath(const comm::Commands& commands) {
  for (const char* name : {"mpirun", "mpiexec"}) {
    if (commands.real_path(name).empty()) continue;
    const std::string text = commands.output({name, "--version"});
    if (!text.empty()) return MpiVersion(text);
  }
  return "";
}

std::string Variable(const comm::Lookup& lookup, const char* name) {
  const char* value = lookup(name);
  return value == nullptr ? "" : value;
}

}  // namespace

ProbeSources ProcessProbeSources(const std::string& folder) {
  ProbeSources sources;
  sources.lookup = comm::ProcessEnvironment();
  sources.commands = comm::ProcessCommands();
  sources.folder = folder;
  return sources;
}

std::string MpiVersion(const std::string& text) {
  static const std::pair<const char*, std::regex> kForms[] = {
      {"Open MPI", std::regex(R"(Open MPI\)? v?([0-9][0-9.a-z]*))")},
      {"Open MPI", std::regex(R"(OpenRTE\)? v?([0-9][0-9.a-z]*))")},
      {"MPICH", std::regex(R"(CRAY MPICH version\s+([0-9][0-9.a-z]*))")},
      {"PALS", std::regex(R"(^mpiexec version ([0-9][0-9.a-z]*))")},
      {"MPICH", std::regex(R"((?:MPICH|HYDRA)[^]*?Version:\s*([0-9][0-9.a-z]*))")},
  };
  for (const auto& [maker, form] : kForms) {
    std::smatch match;
    if (std::regex_search(text, match, form)) return absl::StrCat(maker, " ", match[1].str());
  }
  return text.substr(0, text.find('\n'));
}

RankFacts Probe(const ProbeSources& sources, const comm::Job& job) {
  RankFacts facts;
  facts.rank = job.rank;
  facts.size = job.size;
  facts.local_size = job.local_size;
  facts.host = job.host;
  facts.boot_id = job.boot_id;
  facts.mpi_library = MpiLibrary();
  facts.mpi_launcher = MpiOnPath(sources.commands);
  facts.launcher_kind = comm::NameOf(job.launcher);
  facts.resolved_address = Resolve(job.host);
  facts.memory_available_bytes = parallel::AvailableMemory(sources.proc, sources.cgroup).bytes;
  facts.open_files_limit = OpenFilesLimit();
  facts.shared_memory_bytes = FreeBytes(sources.shared_memory);
  facts.cores = Cores();
  facts.omp_num_threads = Variable(sources.lookup, "OMP_NUM_THREADS");
  facts.folder_free_bytes = FreeBytes(sources.folder);
  facts.devices = job.devices_per_node;
  facts.built_with_cuda = BuiltWithCuda();
  ProbeDevices(facts);
  facts.has_gnuplot = !sources.commands.real_path("gnuplot").empty();
  facts.utf8 = comm::LocaleIsUtf8(sources.lookup);
  return facts;
}

std::vector<RankFacts> ProbeRanks(const ProbeSources& sources, const comm::Job& job,
                                  const comm::Communicator& world) {
  RankFacts mine = Probe(sources, job);
  const comm::ClockOffset offset = comm::MeasureClockOffsets(world, comm::WallClockSeconds)[world.rank()];
  mine.clock_offset_seconds = offset.seconds;
  mine.clock_uncertainty_seconds = offset.uncertainty_seconds;
  std::vector<RankFacts> ranks;
  for (const std::string& text : comm::GatherText(world, ToText(mine))) ranks.push_back(FromText(text));
  CountHostCores(ranks);
  return ranks;
}

}  // namespace plait::doctor
