#include "comm/launch/launcher.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/address_space.h"
#include "comm/launch/host_list.h"

namespace plait::comm {
namespace {

// Names of a variable, one per dialect of the launcher; the first that is set wins.
using Names = std::array<const char*, 4>;

// The variables by which a launcher tells a process its rank. The first entry whose rank and size are set
// wins: under both srun and mpirun SLURM_* are set, and PALS sets PMI_* too, so the more specific ones come
// first.
struct Signature {
  LauncherKind kind;
  Names rank;
  Names size;
  Names local_rank;
  Names local_size;
  Names node_id;
};
constexpr std::array<Signature, 5> kSignatures = {{
    {LauncherKind::kOpenMpi,
     {"OMPI_COMM_WORLD_RANK"},
     {"OMPI_COMM_WORLD_SIZE"},
     {"OMPI_COMM_WORLD_LOCAL_RANK"},
     {"OMPI_COMM_WORLD_LOCAL_SIZE"},
     {}},
    {LauncherKind::kPals,
     {"PALS_RANKID"},
     {"PALS_SIZE", "PALS_NRANKS", "PMI_SIZE"},
     {"PALS_LOCAL_RANKID", "PMIX_LOCAL_RANK", "PMI_LOCAL_RANK"},
     {"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"},
     {"PALS_NODEID"}},
    {LauncherKind::kPmi,
     {"PMI_RANK"},
     {"PMI_SIZE"},
     {"MPI_LOCALRANKID", "PMI_LOCAL_RANK", "MPICH_LOCALRANKID"},
     {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"},
     {}},
    {LauncherKind::kSlurm,
     {"SLURM_PROCID"},
     {"SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "SLURM_NPROCS"},
     {"SLURM_LOCALID"},
     {},
     {"SLURM_NODEID"}},
    {LauncherKind::kTorchrun, {"RANK"}, {"WORLD_SIZE"}, {"LOCAL_RANK"}, {"LOCAL_WORLD_SIZE"}, {"GROUP_RANK"}},
}};

const Signature& SignatureOf(LauncherKind kind) {
  return *std::find_if(kSignatures.begin(), kSignatures.end(),
                       [kind](const Signature& signature) { return signature.kind == kind; });
}

const char* FirstSet(const Lookup& lookup, const Names& names) {
  for (const char* name : names) {
    if (name != nullptr && lookup(name) != nullptr) return name;
  }
  return nullptr;
}

std::optional<int> ReadNumber(const Lookup& lookup, const Names& names, std::string* malformed) {
  const char* name = FirstSet(lookup, names);
  if (name == nullptr) return std::nullopt;
  int number = 0;
  if (absl::SimpleAtoi(lookup(name), &number)) return number;
  if (malformed->empty()) *malformed = absl::StrCat(name, "=", lookup(name));
  return std::nullopt;
}

// Of Slurm's plugins pmix and pmi2, and of cray_shasta.
bool HasPmi(const Lookup& lookup) {
  constexpr std::array kPmi = {"PMIX_RANK", "PMI_FD", "PMI_RANK", "PMI_CONTROL_PORT", "PMI_SHARED_SECRET"};
  return std::any_of(kPmi.begin(), kPmi.end(), [&](const char* name) { return lookup(name) != nullptr; });
}

// "4(x2),1" on node 2 is 1.
std::optional<int> SlurmLocalSize(const Lookup& lookup, std::optional<int> node_id) {
  for (const char* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
    const char* text = lookup(name);
    if (text == nullptr || !node_id.has_value()) continue;
    const auto counts = ExpandSlurmCounts(text);
    if (!counts.ok() || *node_id < 0 || *node_id >= static_cast<int>(counts->size())) continue;
    return (*counts)[*node_id];
  }
  int per_node = 0;
  const char* text = lookup("SLURM_NTASKS_PER_NODE");
  if (text != nullptr && absl::SimpleAtoi(text, &per_node)) return per_node;
  return std::nullopt;
}

int HostsOfNodeFile(const Lookup& lookup) {
  const char* path = lookup("PBS_NODEFILE");
  if (path == nullptr) return 1;
  const auto hosts = ReadHostFile(path);
  return hosts.ok() ? static_cast<int>(hosts->size()) : 1;
}

LauncherTrace Trace(const Lookup& lookup, const Signature& signature) {
  LauncherTrace trace{.kind = signature.kind};
  const char* rank = FirstSet(lookup, signature.rank);
  const char* size = FirstSet(lookup, signature.size);
  trace.has_rank = rank != nullptr;
  trace.has_size = size != nullptr;
  trace.rank_variable = trace.has_rank ? rank : signature.rank[0];
  trace.size_variable = trace.has_size ? size : signature.size[0];
  trace.rank = ReadNumber(lookup, signature.rank, &trace.malformed);
  trace.size = ReadNumber(lookup, signature.size, &trace.malformed);
  trace.local_rank = ReadNumber(lookup, signature.local_rank, &trace.malformed);
  trace.local_size = ReadNumber(lookup, signature.local_size, &trace.malformed);
  trace.node_id = ReadNumber(lookup, signature.node_id, &trace.malformed);
  if (trace.kind == LauncherKind::kSlurm) trace.local_size = SlurmLocalSize(lookup, trace.node_id);
  if (trace.kind == LauncherKind::kPals && !trace.has_size && trace.local_size.has_value()) {
    trace.size = std::max(trace.rank.value_or(0) + 1, *trace.local_size * HostsOfNodeFile(lookup));
    trace.size_derived = true;
  }
  return trace;
}

}  // namespace

Lookup ProcessEnvironment() {
  return [](const char* name) -> const char* { return std::getenv(name); };
}

const char* NameOf(LauncherKind kind) {
  switch (kind) {
    case LauncherKind::kNone:
      return "no launcher";
    case LauncherKind::kOpenMpi:
      return "mpirun (Open MPI)";
    case LauncherKind::kPals:
      return "mpiexec (Cray PALS)";
    case LauncherKind::kPmi:
      return "mpiexec (MPICH, PMI)";
    case LauncherKind::kSlurm:
      return "srun (Slurm)";
    case LauncherKind::kTorchrun:
      return "torchrun";
  }
  return "no launcher";
}

absl::Status CheckPmi(const Launcher& launcher, const Lookup& lookup) {
  if (launcher.kind != LauncherKind::kSlurm || HasPmi(lookup)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "srun started this process without PMI, which MPI needs to find the other ranks; use srun --mpi=pmix "
      "(srun "
      "--mpi=list shows "
      "what there is), launch, or mpirun");
}

absl::Status CheckTorchrun(const Launcher& launcher) {
  if (launcher.kind != LauncherKind::kTorchrun || launcher.size <= 1) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("torchrun (WORLD_SIZE=", launcher.size,
                   ") starts no MPI, without which its processes cannot find each other; start the program "
                   "with mpirun, srun or launch, or unset RANK and WORLD_SIZE to run it alone"));
}

absl::Status CheckAddressSpaceOfRank() {
  constexpr std::int64_t kLeast = std::int64_t{512}
                                  << 20;  // threads' stacks and shared memory, most of it never touched
  const std::optional<std::int64_t> left = base::AddressSpaceLeft();
  if (!left.has_value() || *left >= kLeast) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("a limit on address space leaves ", *left >> 20,
                                                   " MiB; a rank needs ", kLeast >> 20,
                                                   " MiB to start: raise the limit (ulimit -v)"));
}

std::vector<LauncherTrace> TracesOfLaunchers(const Lookup& lookup) {
  std::vector<LauncherTrace> traces;
  for (const Signature& signature : kSignatures) {
    LauncherTrace trace = Trace(lookup, signature);
    if (trace.has_rank || trace.has_size) traces.push_back(std::move(trace));
  }
  return traces;
}

namespace {

// srun also sets the variables of the PMI that its ranks may speak (--mpi=pmi2), on Cray's machines those of
// PALS; its own say more.
bool IsSrunInDisguise(const Lookup& lookup, const LauncherTrace& trace) {
  if (trace.kind != LauncherKind::kPmi && trace.kind != LauncherKind::kPals) return false;
  const LauncherTrace slurm = Trace(lookup, SignatureOf(LauncherKind::kSlurm));
  return InSlurmStep(lookup) && trace.rank == slurm.rank && trace.size == slurm.size;
}

}  // namespace

bool InSlurmStep(const Lookup& lookup) {
  constexpr std::int64_t kInteractiveStep = 0xfffffffa;  // then batch and extern; slurm.h
  const char* text = lookup("SLURM_STEP_ID");
  std::int64_t step = 0;
  return text != nullptr && (!absl::SimpleAtoi(text, &step) || step < kInteractiveStep);
}

bool IsRankOfSrun(const Lookup& lookup) {
  return InSlurmStep(lookup) &&
         (HasPmi(lookup) || Trace(lookup, SignatureOf(LauncherKind::kSlurm)).size != 1);
}

Launcher DetectLauncher(const Lookup& lookup) {
  for (const LauncherTrace& trace : TracesOfLaunchers(lookup)) {
    if (!trace.complete()) continue;
    // An allocation's shell also has SLURM_PROCID.
    if (trace.kind == LauncherKind::kSlurm && !IsRankOfSrun(lookup)) continue;
    if (IsSrunInDisguise(lookup, trace)) continue;
    return {.kind = trace.kind,
            .rank = *trace.rank,
            .size = *trace.size,
            .local_rank = trace.local_rank.value_or(0),
            .local_size = trace.local_size.value_or(*trace.size),
            .size_told = !trace.size_derived,
            .local_told = trace.local_rank.has_value() && trace.local_size.has_value()};
  }
  return {};
}

Launcher DetectLauncher() { return DetectLauncher(ProcessEnvironment()); }

}  // namespace plait::comm
