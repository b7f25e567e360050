#include "comm/launch/launch_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/text.h"

#include "comm/launch/starter.h"

namespace plait::comm {
namespace {

using testing::HasSubstr;

struct Composed {
  LaunchPlan plan;
  const char* command;
};

std::vector<Composed> Table() {
  const std::vector<HostSlots> hosts = {{"a", 4}, {"b", 4}};
  return {
      // As on Polaris: two nodes of four GPUs and 32 cores.
      {{.starter = Starter::kPals,
        .executable = "mpiexec",
        .ranks = 8,
        .ranks_per_node = 4,
        .cores_per_rank = 8,
        .binding = Binding::kDepth,
        .hosts = hosts,
        .host_file = "/var/spool/pbs/aux/3061463"},
       "mpiexec --verbose --envall -n 8 -ppn 4 --hostfile /var/spool/pbs/aux/3061463 --cpu-bind depth -d 8"},
      {{.starter = Starter::kPals,
        .executable = "mpiexec",
        .ranks = 2,
        .binding = Binding::kHardwareThread,
        .hosts = hosts,
        .environment = {{"A", "x,y"}},
        .program = {"p"}},
       "mpiexec --verbose --envall --env A=x,y -n 2 --hosts a,b --cpu-bind thread p"},
      {{.ranks = 2, .binding = Binding::kCore, .program = {"/bin/p", "a b", "--n"}},
       "mpirun --bind-to core -n 2 /bin/p 'a b' --n"},
      {{.ranks = 8,
        .ranks_per_node = 4,
        .cores_per_rank = 8,
        .binding = Binding::kDepth,
        .as_root = true,
        .hosts = hosts,
        .environment = {{"OMP_NUM_THREADS", "8"}},
        .passed = {"PLAIT_X"},
        .program = {"p"}},
       "mpirun --allow-run-as-root --map-by ppr:4:node:PE=8 --bind-to core -n 8 --host a:4,b:4 -x "
       "OMP_NUM_THREADS=8 -x PLAIT_X p"},
      {{.ranks = 3, .cores_per_rank = 2, .binding = Binding::kDepth, .host_file = "h", .program = {"p"}},
       "mpirun --map-by slot:PE=2 --bind-to core -n 3 --hostfile h p"},
      {{.ranks = 9, .oversubscribe = true, .program = {"p"}}, "mpirun --oversubscribe --bind-to none -n 9 p"},
      {{.ranks = 2, .this_machine = true, .program = {"p"}},
       "mpirun --mca ras '^slurm,gridengine,tm,lsf,alps' --mca plm '^slurm,tm,lsf,alps' --bind-to none -n 2 "
       "p"},
      {{.ranks = 2, .binding = Binding::kNuma, .program = {"p"}}, "mpirun --bind-to numa -n 2 p"},
      {{.starter = Starter::kHydra,
        .executable = "mpiexec",
        .ranks = 8,
        .ranks_per_node = 4,
        .cores_per_rank = 8,
        .binding = Binding::kDepth,
        .hosts = hosts,
        .environment = {{"A", "1"}},
        .program = {"p"}},
       "mpiexec -envall -genv A 1 -n 8 -ppn 4 -hosts a:4,b:4 -bind-to core:8 p"},
      {{.starter = Starter::kHydra, .executable = "mpiexec", .ranks = 1, .host_file = "h", .program = {"p"}},
       "mpiexec -envall -n 1 -f h -bind-to none p"},
      {{.starter = Starter::kSrun,
        .executable = "srun",
        .ranks = 8,
        .ranks_per_node = 4,
        .cores_per_rank = 4,
        .cpus_per_rank = 8,
        .binding = Binding::kDepth,
        .mpi_plugin = "pmix",
        .hosts = hosts,
        .environment = {{"A", "x,y"}, {"B", "b c"}},
        .program = {"p"}},
       "env A=x,y 'B=b c' srun --export=ALL --kill-on-bad-exit=1 --quit-on-interrupt --mpi=pmix --nodes=2 "
       "--nodelist=a,b -n 8 --ntasks-per-node=4 -c 8 --cpu-bind=cores p"},
      {{.starter = Starter::kSrun, .executable = "srun", .ranks = 4, .oversubscribe = true, .program = {"p"}},
       "srun --export=ALL --kill-on-bad-exit=1 --quit-on-interrupt --overcommit -n 4 -c 1 --cpu-bind=none p"},
  };
}

TEST(LaunchCommand, ForEachStarter) {
  for (const Composed& entry : Table()) {
    EXPECT_EQ(base::ShellCommand(LaunchCommand(entry.plan)), entry.command);
  }
}

TEST(ParseBinding, NamesAndTheirOpposite) {
  for (const char* name : {"none", "core", "depth", "hwthread", "socket", "numa"}) {
    const absl::StatusOr<Binding> binding = ParseBinding(name);
    ASSERT_TRUE(binding.ok()) << name;
    EXPECT_STREQ(NameOf(*binding), name);
  }
  EXPECT_EQ(ParseBinding("cores").status().message(),
            "'cores' is no binding; expected none, core, depth, hwthread, socket, numa");
}

// A machine where `paths` are what names lead to and `output` what commands print.
// Some services start their programs so.
TEST(ProcessCommands, ReadsOutputWhereTheParentIgnoredSigchld) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(ProcessCommands().output({"echo", "4.1"}), "4.1\n");
  std::signal(SIGCHLD, before);
}

Commands Machine(std::map<std::string, std::string> paths, std::map<std::string, std::string> output) {
  return {.real_path = [paths](const std::string& name) { return paths.count(name) ? paths.at(name) : ""; },
          .output =
              [output](const std::vector<std::string>& command) {
                const std::string line = base::ShellCommand(command);
                return output.count(line) ? output.at(line) : "";
              }};
}

constexpr char kPluginsWithPmix[] =
    "MPI plugin types are...\n\tcray_shasta\n\tpmix\n\tnone\n\tpmi2\nspecific pmix "
    "plugin versions available: pmix_v4\n";
constexpr char kPluginsWithout[] = "MPI plugin types are...\n\tnone\n\tpmi2\n";

TEST(FindStarter, ByWhatTheNamesLeadTo) {
  const auto find = [](bool slurm, const Commands& commands) {
    const absl::StatusOr<FoundStarter> found = FindStarter(slurm, commands);
    if (!found.ok()) return std::string(found.status().message());
    return absl::StrCat(NameOf(found->starter), " as ", found->executable,
                        found->mpi_plugin.empty() ? "" : " with ", found->mpi_plugin);
  };
  const std::map<std::string, std::string> debian = {{"mpirun", "/usr/bin/orterun"},
                                                     {"srun", "/usr/bin/srun"}};
  EXPECT_EQ(find(false, Machine(debian, {})), "mpirun (Open MPI) as mpirun");
  EXPECT_EQ(find(false, Machine({{"mpiexec", "/opt/cray/pals/1.2/bin/mpiexec"}}, {})),
            "mpiexec (Cray PALS) as mpiexec");
  EXPECT_EQ(find(false, Machine({{"mpiexec", "/usr/bin/mpiexec.hydra"}}, {})),
            "mpiexec (MPICH, Hydra) as mpiexec");
  EXPECT_EQ(
      find(false, Machine({{"mpirun", "/opt/x/mpirun"}}, {{"mpirun --version", "HYDRA build details:"}})),
      "mpiexec (MPICH, Hydra) as mpirun");
  EXPECT_EQ(
      find(false, Machine({{"mpirun", "/opt/x/mpirun"}}, {{"mpirun --version", "mpirun (Open MPI) 5.0.3"}})),
      "mpirun (Open MPI) as mpirun");
  EXPECT_THAT(find(false, Machine({{"mpirun", "/opt/x/mpirun"}}, {})),
              HasSubstr("/opt/x/mpirun is neither Open MPI's, MPICH's nor Cray PALS's"));
  EXPECT_THAT(find(false, Machine({}, {})), HasSubstr("neither mpirun nor mpiexec is on the PATH; install"));

  EXPECT_EQ(find(true, Machine(debian, {{"srun --mpi=list", kPluginsWithPmix}})),
            "srun (Slurm) as srun with pmix");
  EXPECT_EQ(find(true, Machine(debian, {{"srun --mpi=list", kPluginsWithout}})),
            "mpirun (Open MPI) as mpirun");
  EXPECT_EQ(find(true, Machine({{"mpiexec", "/x/mpich/bin/mpiexec"}, {"srun", "/usr/bin/srun"}},
                               {{"srun --mpi=list", kPluginsWithout}})),
            "srun (Slurm) as srun with pmi2");
  EXPECT_EQ(find(true, Machine({{"srun", "/usr/bin/srun"}}, {})), "srun (Slurm) as srun");
  EXPECT_EQ(find(true, Machine({{"mpirun", "/usr/bin/orterun"}}, {})), "mpirun (Open MPI) as mpirun");
}

TEST(FindStarterNamed, OnlyThoseThatStartRanks) {
  const Commands debian = Machine({{"mpirun", "/usr/bin/orterun"}}, {});
  EXPECT_EQ(FindStarterNamed("mpirun", debian)->executable, "mpirun");
  EXPECT_EQ(FindStarterNamed("torchrun", debian).status().message(),
            "'torchrun' is not a launcher; expected mpirun, mpiexec or srun");
  EXPECT_EQ(FindStarterNamed("srun", debian).status().message(), "there is no srun on the PATH");
}

}  // namespace
}  // namespace plait::comm
