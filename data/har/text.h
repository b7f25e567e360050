// Reader of the UCI HAR text layout (Anguita, Ghio, Oneto, Parra, Reyes-Ortiz, 2012), files as the archive
// has them.
//
//   PLAIT_ASSIGN_OR_RETURN(SequenceSet set, ReadHarText("/data/UCI HAR Dataset"));
//
//   DIR/train/Inertial Signals/{body_acc,body_gyro,total_acc}_{x,y,z}_train.txt    128 numbers a line
//   DIR/train/y_train.txt            one label a line, 1..6
//   DIR/train/subject_train.txt      one subject a line, 1..30; may be absent (subject 0)
//   DIR/test/...                     likewise with _test
//
// DIR may also be the folder that holds "UCI HAR Dataset". Numbers are separated by any blanks; lines may
// begin with blanks and end with \r\n; empty lines at the end are ignored. Channels of x: body_acc x, y, z
// (g), body_gyro x, y, z (rad/s), total_acc x, y, z (g). Labels become 0..5.
//
// Errors are one line, "FILE:LINE: expected ..., found ...": a missing file (NotFound); a line without 128
// finite numbers, a label outside 1..6, a subject outside 1..30, files with different numbers of lines
// (InvalidArgument). Local.
#ifndef PLAIT_DATA_HAR_TEXT_H_
#define PLAIT_DATA_HAR_TEXT_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/sequence_set.h"

namespace plait::data {

inline constexpr std::int64_t kHarSteps = 128;
inline constexpr std::int64_t kHarChannels = 9;
inline constexpr std::int64_t kHarClasses = 6;

// In the order of the channels of x.
const std::vector<std::string>& HarChannelNames();
// In the order of the labels.
const std::vector<std::string>& HarClassNames();

absl::StatusOr<SequenceSet> ReadHarText(const std::string& folder);

// Reads split `name`, "train" or "test", of a folder returned by FindHarFolder. `read` returns the text of a file, or
// NotFound.
using ReadText = std::function<absl::StatusOr<std::string>(const std::string& path)>;
absl::StatusOr<SequenceSplit> ReadHarSplit(const std::string& folder, const std::string& name,
                                           const ReadText& read);

// Returns `folder`, or "UCI HAR Dataset" in it, whichever has train/ and test/; else NotFound.
absl::StatusOr<std::string> FindHarFolder(const std::string& folder);

// All files that ReadHarText reads from `folder` (as returned by FindHarFolder), whether or not they exist.
std::vector<std::string> HarTextFiles(const std::string& folder);

}  // namespace plait::data

#endif  // PLAIT_DATA_HAR_TEXT_H_
