// What a run prints about its steps: a line per step, and the legend of its abbreviations.
//
//   step=10 loss=3.154310 dt=0.282833 dtf=0.101000 dtb=0.181833 sps=905.127761 sps_per_rank=226.281940
//   tps=926850.827308 tps_per_rank=231712.706827 mfu=46.288281 train_loss=4.125778 val_loss=4.128809
//
// (one line). Times are seconds of the step alone, without loss estimates, samples and checkpoints; dt = dtf + dtb.
// sps and tps are samples and tokens of all ranks per second of the slowest rank's dt. mfu (percent) is printed if the
// peak is known, train_loss and val_loss in steps after which they were estimated. Local.
#ifndef PLAIT_TOOLS_GPT_TRAINING_STEP_LINE_H_
#define PLAIT_TOOLS_GPT_TRAINING_STEP_LINE_H_

#include <string>

#include "tools/text_training/text_task.h"

namespace plait::gpt_training {

std::string StepLine(const text_training::StepNumbers& step);
// StepLine, and the metrics and plots of the history.
text_training::StepOutput GptOutput();

// A table in box-drawing characters, or in ASCII without `utf8`; without the row of mfu where there is none.
// Ends in a newline.
std::string TrainingLegend(bool utf8, bool with_mfu);

}  // namespace plait::gpt_training

#endif  // PLAIT_TOOLS_GPT_TRAINING_STEP_LINE_H_
