// The facts that a rank gathers about itself and its host; the only input of the checks.
#ifndef PLAIT_TOOLS_DOCTOR_CHECKS_RANK_FACTS_H_
#define PLAIT_TOOLS_DOCTOR_CHECKS_RANK_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace plait::doctor {

constexpr std::int64_t kUnknown = -1;  // a number that could not be read

struct RankFacts {
  int rank = 0;
  int size = 1;
  int local_size = 1;
  std::string host;
  std::string boot_id;

  std::string mpi_library;    // "Open MPI 4.1.4"
  std::string mpi_launcher;   // the same of mpirun on the PATH; empty: no mpirun
  std::string launcher_kind;  // what started this rank: "mpirun (Open MPI)", "no launcher"

  std::string resolved_address;  // of the host's name; empty: it does not resolve
  double clock_offset_seconds = 0;
  double clock_uncertainty_seconds = 0;

  std::int64_t memory_available_bytes = kUnknown;  // of the host, or of the container's limit
  std::int64_t open_files_limit = kUnknown;        // soft
  std::int64_t shared_memory_bytes = kUnknown;     // free in /dev/shm; unknown: there is none
  std::vector<int> cores;                          // numbers of those that this rank may use
  int host_cores = 1;                              // see CountHostCores
  std::string omp_num_threads;                     // empty: not set

  std::int64_t folder_free_bytes = kUnknown;

  int devices = 0;           // CUDA devices that the host shows
  std::string driver_error;  // why libcuda cannot be used; empty: it can, or there is no device
  std::string nccl_version;  // empty: libnccl cannot be loaded, or there is no device
  bool built_with_cuda = false;

  bool has_gnuplot = false;
  bool utf8 = false;
};

// Sets host_cores of each of all ranks: the cores that the ranks of its host may use together. A launcher may bind each
// rank to cores of its own.
void CountHostCores(std::vector<RankFacts>& ranks);

// Serialization between ranks, as JSON. FromText aborts if `text` is not a JSON object.
std::string ToText(const RankFacts& facts);
RankFacts FromText(absl::string_view text);

}  // namespace plait::doctor

#endif  // PLAIT_TOOLS_DOCTOR_CHECKS_RANK_FACTS_H_
