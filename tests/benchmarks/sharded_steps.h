// Timed training steps of a model under a strategy: the shared main of gpt_step and llama_step.
//
//   ABSL_FLAGs of sharded_steps.cc: --strategy, --nproc, --steps, ...
//   return ShardedStepsMain(argc, argv, name, sizes, [](const StepSizes& sizes, at::ScalarType type) {
//     return std::make_unique<gpt::Gpt>(..., at::TensorOptions(at::kMeta).dtype(type));
//   });
//
// Rank 0 prints a line per step, times of its own, the loss that of all ranks:
//
//   gpt_step step=3 loss=4.1747493743896484 dt=0.036112 cpu=0.036100
//
// cpu: processor seconds of the whole process, all threads.
#ifndef PLAIT_TESTS_BENCHMARKS_SHARDED_STEPS_H_
#define PLAIT_TESTS_BENCHMARKS_SHARDED_STEPS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "models/block_model.h"

namespace plait::benchmarks {

struct StepSizes {
  std::int64_t batch_size = 12;  // blocks of all ranks
  std::int64_t block_size = 64;
  std::int64_t n_layer = 4, n_head = 4, n_kv_head = 4, n_embd = 128, n_hidden = 512;
  std::int64_t vocab_size = 65;
  double clip_norm = 1;  // 0: none
};

// A model on the meta device, whose first unit is the root.
using MakeModel =
    std::function<std::unique_ptr<models::BlockModel>(const StepSizes& sizes, at::ScalarType type)>;

// `name`: of the program, and the first word of its lines. `sizes`: defaults of the flags. Returns the exit code.
int ShardedStepsMain(int argc, char** argv, const std::string& name, const StepSizes& sizes,
                     const MakeModel& make);

}  // namespace plait::benchmarks

#endif  // PLAIT_TESTS_BENCHMARKS_SHARDED_STEPS_H_
