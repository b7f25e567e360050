// Human-activity data for tests: small made ones, and the real ones where this machine has them.
#ifndef PLAIT_DATA_TESTING_HAR_FILES_H_
#define PLAIT_DATA_TESTING_HAR_FILES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "data/har/recordings.h"
#include "data/sequence_set.h"

namespace plait::data {

// Three windows for training and two for testing, all numbers different; labels cover 0..5.
SequenceSet SmallHarSet();

// Writes the set in the UCI HAR text layout, in the archive's own style (leading blanks, 1.0000000e-001).
void WriteHarText(const SequenceSet& set, const std::string& folder);

// One recording of each of `subjects` subjects: every activity once, 300 + 40 subject rows each, unlabelled
// rows between; walking-like oscillations, whole sensor counts.
Recordings MadeRecordings(int subjects);

// The folder of real data sets: $PLAIT_REAL_DATA, or shared/data beside the workspace; none if absent. Says
// so.
std::optional<std::string> RealDataFolder();

// The recordings fetched by set-up, in the cache; none if absent. Says so.
std::optional<std::string> FetchedRecordings();

// Unpacks a .tar.xz into a new folder for this test and returns the folder.
std::string Unpack(const std::string& archive);

}  // namespace plait::data

#endif  // PLAIT_DATA_TESTING_HAR_FILES_H_
