#include "comm/launch/launcher.h"

#include <array>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace plait::comm {
namespace {

// Names of a variable, one per dialect of the launcher; the first that is set wins.
using Names = std::array<const char*, 3>;

// The variables by which a launcher tells a process its place. The first entry whose rank and size are set
// wins: srun and mpirun both leave SLURM_* in place, and PALS sets PMI_* too, so the more specific ones come
// first.
struct Signature {
  LauncherKind kind;
  Names rank;
  Names size;
  Names local_rank;
  Names local_size;
};
constexpr std::array<Signature, 5> kSignatures = {{
    {LauncherKind::kOpenMpi,
     {"OMPI_COMM_WORLD_RANK"},
     {"OMPI_COMM_WORLD_SIZE"},
     {"OMPI_COMM_WORLD_LOCAL_RANK"},
     {"OMPI_COMM_WORLD_LOCAL_SIZE"}},
    {LauncherKind::kPals,
     {"PALS_RANKID"},
     {"PALS_SIZE", "PMI_SIZE"},
     {"PALS_LOCAL_RANKID", "PMIX_LOCAL_RANK"},
     {"PALS_LOCAL_SIZE"}},
    {LauncherKind::kPmi,
     {"PMI_RANK"},
     {"PMI_SIZE"},
     {"MPI_LOCALRANKID", "PMI_LOCAL_RANK", "MPICH_LOCALRANKID"},
     {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"}},
    {LauncherKind::kSlurm, {"SLURM_PROCID"}, {"SLURM_NTASKS"}, {"SLURM_LOCALID"}, {"SLURM_NTASKS_PER_NODE"}},
    {LauncherKind::kTorchrun, {"RANK"}, {"WORLD_SIZE"}, {"LOCAL_RANK"}, {"LOCAL_WORLD_SIZE"}},
}};

bool ReadNumber(const char* (*lookup)(const char*), const Names& names, int* number) {
  for (const char* name : names) {
    const char* text = name == nullptr ? nullptr : lookup(name);
    if (text != nullptr) return absl::SimpleAtoi(text, number);
  }
  return false;
}

}  // namespace

Launcher DetectLauncher(const char* (*lookup)(const char* name)) {
  for (const Signature& signature : kSignatures) {
    Launcher found{.kind = signature.kind};
    if (!ReadNumber(lookup, signature.rank, &found.rank)) continue;
    if (!ReadNumber(lookup, signature.size, &found.size)) continue;
    // An allocation's shell (salloc, sbatch) also has SLURM_PROCID; only a step started by srun has a step's
    // name.
    if (found.kind == LauncherKind::kSlurm && lookup("SLURM_STEP_ID") == nullptr) continue;
    if (!ReadNumber(lookup, signature.local_rank, &found.local_rank)) found.local_rank = 0;
    if (!ReadNumber(lookup, signature.local_size, &found.local_size)) found.local_size = found.size;
    return found;
  }
  return {};
}

Launcher DetectLauncher() {
  return DetectLauncher([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace plait::comm
