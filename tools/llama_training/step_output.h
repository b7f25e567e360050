// What a run prints and records of its steps:
//
//   iter=0 loss=10.863029 dt=12.088833 dtf=11.562250 dtb=0.526583 tps=163.840000
//
// iter counts from 0; dt = dtf + dtb in seconds: forward passes, and backward passes with reductions and optimizer, of
// rank 0; tps: tokens of all ranks per second of the slowest rank. Then mfu (percent) if the peak is known, train_loss
// and val_loss if they were estimated. The history has iter, loss, dt, dtf, dtb, tps and mfu; with `of_text` also
// train_loss and val_loss. Local.
#ifndef PLAIT_TOOLS_LLAMA_TRAINING_STEP_OUTPUT_H_
#define PLAIT_TOOLS_LLAMA_TRAINING_STEP_OUTPUT_H_

#include "tools/text_training/text_task.h"

namespace plait::llama_training {

text_training::StepOutput LlamaOutput(bool of_text);

}  // namespace plait::llama_training

#endif  // PLAIT_TOOLS_LLAMA_TRAINING_STEP_OUTPUT_H_
