// Human-activity data for tests: small generated sets, and real ones if available.
#ifndef PLAIT_DATA_TESTING_HAR_FILES_H_
#define PLAIT_DATA_TESTING_HAR_FILES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "data/har/recordings.h"
#include "data/sequence_set.h"

namespace plait::data {

// Three windows for training and three for testing; their labels are 0, 1, 2 and 3, 4, 5.
SequenceSet SmallHarSet();

// Writes the set in the UCI HAR text layout, in the archive's own style (leading blanks, 1.0000000e-001).
void WriteHarText(const SequenceSet& set, const std::string& folder);

// One recording of each of subjects 1..subjects: labels 1 to 7 (six activities, one transition) in turn, for
// 300 + 40 * subject rows each, of which the first 52 are unlabelled (-1); oscillations in whole sensor counts.
Recordings MadeRecordings(int subjects);

// The folder of real data sets: $PLAIT_REAL_DATA, or shared/data beside the workspace; nullopt, with a message on
// stdout, if there is none.
std::optional<std::string> RealDataFolder();

// The recordings in the cache, fetched by ./bazelw setup; nullopt, with a message on stdout, if there are none.
std::optional<std::string> FetchedRecordings();

// Extracts a .tar.xz into a folder in $TEST_TMPDIR and returns the folder.
std::string Unpack(const std::string& archive);

}  // namespace plait::data

#endif  // PLAIT_DATA_TESTING_HAR_FILES_H_
