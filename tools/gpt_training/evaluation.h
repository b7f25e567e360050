// Estimates of the losses, and a sample, between steps.
//
//   PLAIT_ASSIGN_OR_RETURN(Evaluation evaluation, Evaluation::Make(config, corpus, world));
//   const Losses losses = evaluation.Estimate(sharded);
//   PLAIT_ASSIGN_OR_RETURN(const std::string text, evaluation.Sample(sharded, step));
//
// Collective: every rank takes its part of each batch, and all draw the same sample.
#ifndef PLAIT_TOOLS_GPT_TRAINING_EVALUATION_H_
#define PLAIT_TOOLS_GPT_TRAINING_EVALUATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/communicator.h"
#include "tools/gpt_training/block_batches.h"
#include "tools/gpt_training/config.h"
#include "tools/gpt_training/corpus.h"
#include "tools/gpt_training/sharded_gpt.h"
#include "tools/gpt_training/step_line.h"

namespace plait::gpt_training {

class Evaluation {
 public:
  // InvalidArgument where a block does not fit a part of the text. All arguments outlive it.
  static absl::StatusOr<Evaluation> Make(const Config& config, const Corpus& corpus,
                                         const comm::Communicator& world);

  // Means over eval_iters batches of each part of the text, without dropout: the same blocks each time, so
  // that the numbers can be compared.
  Losses Estimate(ShardedGpt& sharded);

  // The prompt and sample_tokens tokens behind it. The same seed and step draw the same random numbers.
  // Errors of gpt::Generate.
  absl::StatusOr<std::string> Sample(ShardedGpt& sharded, std::int64_t step);
  // What samples begin with: --sample-prompt without characters that the text lacks, at least one token.
  const std::string& prompt() const { return prompt_; }
  // Whether that is the prompt that was asked for.
  bool has_asked_prompt() const { return prompt_ == config_.sample_prompt; }

 private:
  Evaluation(const Config& config, const Corpus& corpus, const comm::Communicator& world, BlockBatches train,
             BlockBatches validation);
  double MeanLoss(ShardedGpt& sharded, BlockBatches& batches);

  const Config& config_;
  const Corpus& corpus_;
  comm::Communicator world_;
  BlockBatches train_, validation_;
  std::vector<std::int64_t> prompt_tokens_;
  std::string prompt_;
};

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_EVALUATION_H_
