#include "comm/launch/starter.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/text.h"

namespace plait::comm {
namespace {

std::optional<Starter> StarterOfPath(absl::string_view path) {
  if (absl::StrContains(path, "/pals/")) return Starter::kPals;
  for (const char* part : {"openmpi", "orterun", "prterun"}) {
    if (absl::StrContains(path, part)) return Starter::kOpenMpi;
  }
  for (const char* part : {"hydra", "mpich"}) {
    if (absl::StrContains(path, part)) return Starter::kHydra;
  }
  return std::nullopt;
}

std::optional<Starter> StarterOfVersion(absl::string_view text) {
  for (const char* part : {"Open MPI", "OpenRTE", "PRRTE"}) {
    if (absl::StrContains(text, part)) return Starter::kOpenMpi;
  }
  for (const char* part : {"HYDRA", "Intel(R) MPI", "MPICH"}) {
    if (absl::StrContains(text, part)) return Starter::kHydra;
  }
  if (absl::StrContains(text, "PALS") || absl::StartsWith(text, "mpiexec version")) return Starter::kPals;
  return std::nullopt;
}

absl::StatusOr<FoundStarter> Identify(const std::string& name, const Commands& commands) {
  const std::string path = commands.real_path(name);
  if (path.empty()) return absl::NotFoundError(absl::StrCat("there is no ", name, " on the PATH"));
  std::optional<Starter> starter = StarterOfPath(path);
  if (!starter) starter = StarterOfVersion(commands.output({name, "--version"}));
  if (starter)
    return FoundStarter{.starter = *starter, .executable = name, .reason = name + " is on the PATH"};
  return absl::NotFoundError(absl::StrCat(path,
                                          " is neither Open MPI's, MPICH's nor Cray PALS's; put one of them "
                                          "first on the PATH"));
}

absl::StatusOr<FoundStarter> FindMpi(const Commands& commands) {
  absl::StatusOr<FoundStarter> mpirun = Identify("mpirun", commands);
  if (mpirun.ok()) return mpirun;
  absl::StatusOr<FoundStarter> mpiexec = Identify("mpiexec", commands);
  if (mpiexec.ok()) return mpiexec;
  const bool absent = commands.real_path("mpirun").empty() && commands.real_path("mpiexec").empty();
  if (!absent) return commands.real_path("mpirun").empty() ? mpiexec : mpirun;
  return absl::NotFoundError(
      "cannot start mpirun: neither mpirun nor mpiexec is on the PATH; install OpenMPI (openmpi-bin) or run "
      "on one "
      "rank");
}

// The plugin by which srun starts programs of `mpi`; empty if this Slurm has none.
std::string PluginFor(Starter mpi, absl::string_view list) {
  std::string best;
  for (const absl::string_view word : absl::StrSplit(list, absl::ByAnyChar(" ,:\t\n"), absl::SkipEmpty())) {
    if (mpi == Starter::kOpenMpi && word == "pmix") return "pmix";
    if (mpi == Starter::kHydra && word == "pmi2") return "pmi2";
    if (mpi == Starter::kPals && word == "cray_shasta") return "cray_shasta";
  }
  return best;
}

absl::StatusOr<FoundStarter> FindInSlurm(const Commands& commands) {
  const bool srun = !commands.real_path("srun").empty();
  absl::StatusOr<FoundStarter> mpi = FindMpi(commands);
  if (!srun) return mpi;
  const FoundStarter by_srun = {.starter = Starter::kSrun, .executable = "srun", .reason = "in a Slurm job"};
  if (!mpi.ok()) return by_srun;
  FoundStarter chosen = by_srun;
  chosen.mpi_plugin = PluginFor(mpi->starter, commands.output({"srun", "--mpi=list"}));
  if (!chosen.mpi_plugin.empty()) return chosen;
  mpi->reason = absl::StrCat("srun has no plugin for ", NameOf(mpi->starter));
  return mpi;
}

std::string RealPath(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
    const std::string candidate = absl::StrCat(folder.empty() ? "." : folder, "/", name);
    std::error_code error;
    if (!std::filesystem::is_regular_file(candidate, error) || access(candidate.c_str(), X_OK) != 0) continue;
    const std::filesystem::path real = std::filesystem::canonical(candidate, error);
    return error ? candidate : real.string();
  }
  return "";
}

std::string Output(const std::vector<std::string>& command) {
  // Where the parent ignored it, the command's exit code would be lost.
  std::signal(SIGCHLD, SIG_DFL);
  FILE* pipe = popen((base::ShellCommand(command) + " 2>&1 </dev/null").c_str(), "re");
  if (pipe == nullptr) return "";
  std::string text;
  char buffer[4096];
  for (std::size_t got; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, got);
  return pclose(pipe) == 0 ? text : "";
}

}  // namespace

Commands ProcessCommands() { return {.real_path = RealPath, .output = Output}; }

absl::StatusOr<FoundStarter> FindStarter(bool in_slurm_job, const Commands& commands) {
  return in_slurm_job ? FindInSlurm(commands) : FindMpi(commands);
}

absl::StatusOr<FoundStarter> FindStarterNamed(const std::string& name, const Commands& commands) {
  if (name == "mpirun" || name == "mpiexec") return Identify(name, commands);
  if (name != "srun") {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is not a launcher; expected mpirun, mpiexec or srun"));
  }
  if (commands.real_path("srun").empty()) return absl::NotFoundError("there is no srun on the PATH");
  PLAIT_ASSIGN_OR_RETURN(FoundStarter found, FindInSlurm(commands));
  found.mpi_plugin = found.starter == Starter::kSrun ? found.mpi_plugin : "";
  found.starter = Starter::kSrun;
  found.executable = "srun";
  found.reason = "asked for";
  return found;
}

}  // namespace plait::comm
