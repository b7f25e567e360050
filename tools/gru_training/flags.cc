#include "tools/gru_training/flags.h"

#include <cstdint>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/path.h"
#include "base/status_macros.h"

using plait::gru_training::Config;

ABSL_FLAG(std::uint64_t, seed, Config().seed, "of the initial parameters and the order of the samples");
ABSL_FLAG(int, log_interval, Config().log_interval, "batches from one progress line to the next");
ABSL_FLAG(double, percent_data, Config().percent_data, "share of the data to use, above 0 and at most 1");
ABSL_FLAG(int, ensemble_size, Config().ensemble_size,
          "trains so many models, with seeds derived from --seed");
ABSL_FLAG(int, sequence_length, Config().sequence_length, "steps of a sequence; the first ones are used");
ABSL_FLAG(double, tf, Config().tf, "final time: a step is tf / sequence-length long");
ABSL_FLAG(int, hidden_size, Config().hidden_size, "units of a layer");
ABSL_FLAG(int, num_layers, Config().num_layers, "stacked layers");
ABSL_FLAG(std::string, gru, Config().gru,
          "implicit or classic cell; by default implicit, and classic where one rank trains serially");
ABSL_FLAG(
    bool, implicit_serial, Config().implicit_serial,
    "the implicit cell in the serial network: that of one rank without --force-lp, and that of serial tests");
ABSL_FLAG(std::string, dtype, Config().dtype,
          "float32, float64, or bfloat16: matrix products of float32 numbers rounded to bfloat16");
ABSL_FLAG(int, batch_size, Config().batch_size, "samples of a batch");
ABSL_FLAG(int, epochs, Config().epochs, "how often to go through the data");
ABSL_FLAG(double, lr, Config().lr, "learning rate");
ABSL_FLAG(bool, use_sgd, Config().use_sgd, "plain gradient descent instead of Adam");
ABSL_FLAG(bool, force_lp, Config().force_lp, "layer-parallel on one rank, too");
ABSL_FLAG(int, lp_levels, Config().lp_levels, "levels of the time grid");
ABSL_FLAG(int, lp_iters, Config().lp_iters, "iterations backward, and forward without --lp-fwd-iters");
ABSL_FLAG(int, lp_fwd_iters, Config().lp_fwd_iters, "iterations forward; -1: as --lp-iters");
ABSL_FLAG(int, lp_print, Config().lp_print,
          "1: with each progress line, the residuals of the latest solves by iteration");
ABSL_FLAG(int, lp_braid_print, Config().lp_braid_print, "1: these residuals after every batch");
ABSL_FLAG(std::string, lp_cfactor, absl::StrJoin(Config().lp_cfactor, ","),
          "coarsening factor, or one for each level from the finest on: 4,2");
ABSL_FLAG(bool, lp_use_downcycle, Config().lp_use_downcycle,
          "begin on the finest level; without it the first iteration begins on the coarsest");
ABSL_FLAG(
    int, lp_fmg_iterations, Config().lp_fmg_iterations,
    "how many iterations of a solve are full multigrid, with a cycle on each coarse level before the next "
    "finer one; -1: all");
ABSL_FLAG(int, lp_fwd_finerelax, Config().lp_fwd_finerelax,
          "CF-sweeps after the F-sweep on the finest level, forward: 0 is F-, 1 is FCF-relaxation");
ABSL_FLAG(int, lp_fwd_relax, Config().lp_fwd_relax, "the same on the other levels");
ABSL_FLAG(int, lp_bwd_relax, Config().lp_bwd_relax,
          "the same on the other levels, backward; the finest has F-");
ABSL_FLAG(std::string, lp_coarse_step, Config().lp_coarse_step,
          "what a coarse step is: frozen, the fine step repeated with the gates of its beginning, or one "
          "long step");
ABSL_FLAG(std::string, lp_coarse_hold, absl::StrJoin(Config().lp_coarse_hold, ","),
          "for how many items the gates of a coarse step stand still, from the first coarse level on; a step "
          "over more is done in parts; 0: never");
ABSL_FLAG(int, nproc, Config().nproc,
          "starts itself on so many ranks where no launcher did; 0: one per core, at most 8");
ABSL_FLAG(
    std::string, data_dir, Config().data_dir,
    "a folder in the UCI HAR text layout, or a prepared .h5 file; by default the recordings that set-up has "
    "fetched, else a synthetic stand-in");
ABSL_FLAG(std::string, checkpoint_dir, Config().checkpoint_dir,
          "where to keep the state of the run after each epoch, and at SIGTERM; then the exit code is 143");
ABSL_FLAG(std::string, resume, Config().resume, "a checkpoint, or the folder that has one, to go on from");
ABSL_FLAG(std::string, history, Config().history,
          "an HDF5 file for losses, accuracies, times and residuals (xarray, ncdump and h5py open it)");
ABSL_FLAG(double, timeout, Config().timeout_seconds,
          "seconds a rank may wait for another before the job ends and names it");

namespace plait::gru_training {
namespace {

absl::StatusOr<std::vector<int>> List(absl::string_view flag, const std::string& text) {
  std::vector<int> numbers;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int number = 0;
    if (!absl::SimpleAtoi(part, &number)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag, "=", text, ": expected a whole number, or a list such as 4,2"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

base::ToolUsage Usage() {
  return {.name = "train_gru",
          .summary =
              "Trains a GRU network on human-activity sequences, the steps of a sequence spread over ranks "
              "and solved in parallel by multigrid in time.",
          .examples =
              {"train_gru", "train_gru --nproc=4 --lp-levels 3 --lp-cfactor 4 --epochs=4",
               "mpirun -n 4 train_gru --lp-iters=1 --lp-fwd-iters 2 --checkpoint-dir=run --history=run.h5"},
          .groups = {{"Run", {"seed", "log_interval", "percent_data", "ensemble_size"}},
                     {"Network", {"sequence_length", "tf", "hidden_size", "num_layers", "implicit_serial"}},
                     {"Training", {"batch_size", "epochs", "lr", "use_sgd"}},
                     {"Layer-parallel solver",
                      {"force_lp", "lp_levels", "lp_iters", "lp_fwd_iters", "lp_print", "lp_braid_print",
                       "lp_cfactor", "lp_use_downcycle", "lp_fmg_iterations", "lp_fwd_finerelax",
                       "lp_fwd_relax", "lp_bwd_relax", "lp_coarse_step", "lp_coarse_hold"}},
                     {"Arithmetic", {"gru", "dtype"}},
                     {"Ranks", {"nproc", "timeout"}},
                     {"Files", {"data_dir", "checkpoint_dir", "resume", "history"}}}};
}

absl::StatusOr<Config> ConfigFromFlags() {
  Config c;
  c.seed = absl::GetFlag(FLAGS_seed);
  c.log_interval = absl::GetFlag(FLAGS_log_interval);
  c.percent_data = absl::GetFlag(FLAGS_percent_data);
  c.ensemble_size = absl::GetFlag(FLAGS_ensemble_size);
  c.sequence_length = absl::GetFlag(FLAGS_sequence_length);
  c.tf = absl::GetFlag(FLAGS_tf);
  c.hidden_size = absl::GetFlag(FLAGS_hidden_size);
  c.num_layers = absl::GetFlag(FLAGS_num_layers);
  c.gru = absl::GetFlag(FLAGS_gru);
  c.implicit_serial = absl::GetFlag(FLAGS_implicit_serial);
  c.dtype = absl::GetFlag(FLAGS_dtype);
  c.batch_size = absl::GetFlag(FLAGS_batch_size);
  c.epochs = absl::GetFlag(FLAGS_epochs);
  c.lr = absl::GetFlag(FLAGS_lr);
  c.use_sgd = absl::GetFlag(FLAGS_use_sgd);
  c.force_lp = absl::GetFlag(FLAGS_force_lp);
  c.lp_levels = absl::GetFlag(FLAGS_lp_levels);
  PLAIT_ASSIGN_OR_RETURN(c.lp_cfactor, List("lp-cfactor", absl::GetFlag(FLAGS_lp_cfactor)));
  c.lp_iters = absl::GetFlag(FLAGS_lp_iters);
  c.lp_fwd_iters = absl::GetFlag(FLAGS_lp_fwd_iters);
  c.lp_use_downcycle = absl::GetFlag(FLAGS_lp_use_downcycle);
  c.lp_fwd_finerelax = absl::GetFlag(FLAGS_lp_fwd_finerelax);
  c.lp_fwd_relax = absl::GetFlag(FLAGS_lp_fwd_relax);
  c.lp_bwd_relax = absl::GetFlag(FLAGS_lp_bwd_relax);
  c.lp_fmg_iterations = absl::GetFlag(FLAGS_lp_fmg_iterations);
  c.lp_coarse_step = absl::GetFlag(FLAGS_lp_coarse_step);
  PLAIT_ASSIGN_OR_RETURN(c.lp_coarse_hold, List("lp-coarse-hold", absl::GetFlag(FLAGS_lp_coarse_hold)));
  c.lp_print = absl::GetFlag(FLAGS_lp_print);
  c.lp_braid_print = absl::GetFlag(FLAGS_lp_braid_print);
  c.nproc = absl::GetFlag(FLAGS_nproc);
  c.data_dir = base::FromUser(absl::GetFlag(FLAGS_data_dir));
  c.checkpoint_dir = base::FromUser(absl::GetFlag(FLAGS_checkpoint_dir));
  c.resume = base::FromUser(absl::GetFlag(FLAGS_resume));
  c.history = base::FromUser(absl::GetFlag(FLAGS_history));
  c.timeout_seconds = absl::GetFlag(FLAGS_timeout);
  return c;
}

std::string FlagSettings() {
  std::string settings = base::Settings(Usage());
  for (const auto& [name, text] : {std::pair("lp_cfactor=", absl::GetFlag(FLAGS_lp_cfactor)),
                                   std::pair("lp_coarse_hold=", absl::GetFlag(FLAGS_lp_coarse_hold))}) {
    // A single entry is a number to the reader.
    const bool single = text.find(',') == std::string::npos;
    settings =
        absl::StrReplaceAll(settings, {{absl::StrCat(name, "'", text, "'"),
                                        absl::StrCat(name, single ? "" : "[", text, single ? "" : "]")}});
  }
  return settings;
}

}  // namespace plait::gru_training
