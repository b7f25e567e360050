// Which state of the source this program was built from.
#ifndef PLAIT_TOOLS_GRU_TRAINING_REVISION_H_
#define PLAIT_TOOLS_GRU_TRAINING_REVISION_H_

namespace plait::gru_training {

// The commit that was checked out, 40 hexadecimal digits; "unknown" for a source tree without git.
const char* Revision();

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_REVISION_H_
