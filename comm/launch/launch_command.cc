#include "comm/launch/launch_command.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plait::comm {
namespace {

using Words = std::vector<std::string>;

constexpr std::array<Binding, 6> kBindings = {Binding::kNone,           Binding::kCore,   Binding::kDepth,
                                              Binding::kHardwareThread, Binding::kSocket, Binding::kNuma};

void Append(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

// "a:4,b:4"; with `separator` null only the names.
std::string HostList(const std::vector<HostSlots>& hosts, const char* separator) {
  return absl::StrJoin(hosts, ",", [separator](std::string* out, const HostSlots& host) {
    absl::StrAppend(out, host.host);
    if (separator != nullptr) absl::StrAppend(out, separator, host.slots);
  });
}

// --map-by sets the number of ranks per node and of cores per rank.
Words OpenMpiMapping(const LaunchPlan& plan) {
  const bool deep = plan.binding == Binding::kDepth && plan.cores_per_rank > 1;
  if (plan.ranks_per_node == 0 && !deep && !plan.by_slots) return {};
  const std::string cores = deep ? absl::StrCat(":PE=", plan.cores_per_rank) : "";
  if (plan.ranks_per_node == 0) return {"--map-by", "slot" + cores};
  return {"--map-by", absl::StrCat("ppr:", plan.ranks_per_node, ":node", cores)};
}

// Of the components that find a job's hosts (ras) and start daemons there (plm), none of a scheduler's. Names that this
// Open MPI does not have are no error.
Words OpenMpiWithoutScheduler() {
  return {"--mca", "ras", "^slurm,gridengine,tm,lsf,alps", "--mca", "plm", "^slurm,tm,lsf,alps"};
}

Words OpenMpiCommand(const LaunchPlan& plan) {
  Words words = {plan.executable};
  if (plan.this_machine) Append(words, OpenMpiWithoutScheduler());
  if (plan.as_root) words.push_back("--allow-run-as-root");
  if (plan.oversubscribe) words.push_back("--oversubscribe");
  Append(words, OpenMpiMapping(plan));
  Append(words, {"--bind-to", plan.binding == Binding::kDepth ? "core" : NameOf(plan.binding)});
  Append(words, {"-n", absl::StrCat(plan.ranks)});
  if (!plan.host_file.empty()) {
    Append(words, {"--hostfile", plan.host_file});
  } else if (!plan.hosts.empty()) {
    Append(words, {"--host", HostList(plan.hosts, ":")});
  }
  for (const auto& [name, value] : plan.environment) Append(words, {"-x", absl::StrCat(name, "=", value)});
  for (const std::string& name : plan.passed) Append(words, {"-x", name});
  return words;
}

Words HydraCommand(const LaunchPlan& plan) {
  Words words = {plan.executable, "-envall"};
  for (const auto& [name, value] : plan.environment) Append(words, {"-genv", name, value});
  Append(words, {"-n", absl::StrCat(plan.ranks)});
  if (plan.ranks_per_node > 0) Append(words, {"-ppn", absl::StrCat(plan.ranks_per_node)});
  if (!plan.host_file.empty()) {
    Append(words, {"-f", plan.host_file});
  } else if (!plan.hosts.empty()) {
    Append(words, {"-hosts", HostList(plan.hosts, ":")});
  }
  const bool depth = plan.binding == Binding::kDepth;
  Append(words, {"-bind-to", depth ? absl::StrCat("core:", plan.cores_per_rank) : NameOf(plan.binding)});
  return words;
}

const char* PalsBinding(Binding binding) {
  return binding == Binding::kHardwareThread ? "thread" : NameOf(binding);
}

Words PalsCommand(const LaunchPlan& plan) {
  Words words = {plan.executable, "--verbose", "--envall"};
  for (const auto& [name, value] : plan.environment) Append(words, {"--env", absl::StrCat(name, "=", value)});
  Append(words, {"-n", absl::StrCat(plan.ranks)});
  if (plan.ranks_per_node > 0) Append(words, {"-ppn", absl::StrCat(plan.ranks_per_node)});
  if (!plan.host_file.empty()) {
    Append(words, {"--hostfile", plan.host_file});
  } else if (!plan.hosts.empty()) {
    Append(words, {"--hosts", HostList(plan.hosts, nullptr)});
  }
  Append(words, {"--cpu-bind", PalsBinding(plan.binding)});
  if (plan.binding == Binding::kDepth) Append(words, {"-d", absl::StrCat(plan.cores_per_rank)});
  return words;
}

const char* SrunBinding(Binding binding) {
  switch (binding) {
    case Binding::kNone:
      return "none";
    case Binding::kCore:
    case Binding::kDepth:
      return "cores";
    case Binding::kHardwareThread:
      return "threads";
    case Binding::kSocket:
      return "sockets";
    case Binding::kNuma:
      return "ldoms";
  }
  return "none";
}

// srun's --export does not support commas in values: variables are set for srun, which forwards its environment.
Words SrunCommand(const LaunchPlan& plan) {
  Words words;
  if (!plan.environment.empty()) words.push_back("env");
  for (const auto& [name, value] : plan.environment) words.push_back(absl::StrCat(name, "=", value));
  Append(words, {plan.executable, "--export=ALL", "--kill-on-bad-exit=1", "--quit-on-interrupt"});
  if (!plan.mpi_plugin.empty()) words.push_back("--mpi=" + plan.mpi_plugin);
  if (plan.oversubscribe) words.push_back("--overcommit");
  if (!plan.hosts.empty()) {
    Append(words,
           {absl::StrCat("--nodes=", plan.hosts.size()), "--nodelist=" + HostList(plan.hosts, nullptr)});
  }
  Append(words, {"-n", absl::StrCat(plan.ranks)});
  if (plan.ranks_per_node > 0) words.push_back(absl::StrCat("--ntasks-per-node=", plan.ranks_per_node));
  Append(words,
         {"-c", absl::StrCat(plan.cpus_per_rank), absl::StrCat("--cpu-bind=", SrunBinding(plan.binding))});
  return words;
}

Words OptionsOf(const LaunchPlan& plan) {
  switch (plan.starter) {
    case Starter::kOpenMpi:
      return OpenMpiCommand(plan);
    case Starter::kHydra:
      return HydraCommand(plan);
    case Starter::kPals:
      return PalsCommand(plan);
    case Starter::kSrun:
      return SrunCommand(plan);
  }
  return {};
}

}  // namespace

const char* NameOf(Starter starter) {
  constexpr std::array<const char*, 4> kNames = {"mpirun (Open MPI)", "mpiexec (MPICH, Hydra)",
                                                 "mpiexec (Cray PALS)", "srun (Slurm)"};
  return kNames[static_cast<std::size_t>(starter)];
}

const char* NameOf(Binding binding) {
  constexpr std::array<const char*, 6> kNames = {"none", "core", "depth", "hwthread", "socket", "numa"};
  return kNames[static_cast<std::size_t>(binding)];
}

absl::StatusOr<Binding> ParseBinding(absl::string_view name) {
  for (const Binding binding : kBindings) {
    if (name == NameOf(binding)) return binding;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name, "' is no binding; expected ",
      absl::StrJoin(kBindings, ", ", [](std::string* out, Binding b) { out->append(NameOf(b)); })));
}

std::vector<std::string> LaunchCommand(const LaunchPlan& plan) {
  Words words = OptionsOf(plan);
  Append(words, plan.program);
  return words;
}

}  // namespace plait::comm
