// All settings of a training run, with their defaults: the one place where these are chosen.
//
//   Config config;                                     // the defaults
//   config.lp_levels = 4;
//   PLAIT_RETURN_IF_ERROR(Check(config, /*ranks=*/4)); // before any work
//
// Local.
#ifndef PLAIT_TOOLS_GRU_TRAINING_CONFIG_H_
#define PLAIT_TOOLS_GRU_TRAINING_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace plait::gru_training {

struct Config {
  std::uint64_t seed = 783214419;
  int log_interval = 10;
  double percent_data = 1.0;  // a share, 0 < percent_data <= 1
  int ensemble_size = 1;

  int sequence_length = 128;
  double tf = 128.0;
  int hidden_size = 100;
  int num_layers = 2;
  std::string gru = "";  // implicit or classic; empty: implicit layer-parallel, classic in serial training
  bool implicit_serial = false;
  std::string dtype = "float32";  // float64; bfloat16: products of float32 numbers rounded to bfloat16

  int batch_size = 100;
  int epochs = 4;
  double lr = 0.001;
  bool use_sgd = false;

  bool force_lp = false;
  // Chosen from the curve of gradient error against cost in docs/benchmarks.md.
  int lp_levels = 2;
  std::vector<int> lp_cfactor = {4};
  int lp_iters = 1;
  int lp_fwd_iters = 2;  // -1: lp_iters
  bool lp_use_downcycle = false;
  int lp_fmg_iterations = 0;  // iterations of a solve that are full multigrid; -1: all
  int lp_fwd_finerelax = 0;   // CF-sweeps: 0 is F-, 1 is FCF-relaxation
  int lp_fwd_relax = 1;
  int lp_bwd_relax = 1;
  std::string lp_coarse_step = "frozen";     // one
  std::vector<int> lp_coarse_hold = {2, 4};  // items for which the gates stand still, from level 1 on
  int lp_print = 0;
  int lp_braid_print = 0;

  int nproc = 0;  // 0: one rank per core, at most 8; only without a launcher
  std::string data_dir = "";
  std::string checkpoint_dir = "";
  std::string resume = "";  // a checkpoint, or the folder that holds one
  std::string history = "";
  double timeout_seconds = 600;
};

// Whether the time steps are spread over ranks; else one rank takes them in turn.
bool IsLayerParallel(const Config& config, int ranks);
// Of the network that is trained, and of the serial one that tests its parameters.
bool TrainsImplicit(const Config& config, int ranks);
bool TestsImplicit(const Config& config, int ranks);
int ForwardIterations(const Config& config);

// InvalidArgument, one line with the flag's name, for what cannot work on `ranks` ranks.
absl::Status Check(const Config& config, int ranks);

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_CONFIG_H_
