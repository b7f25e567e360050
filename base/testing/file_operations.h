// What a program does to the files of a folder, call by call, as the kernel sees it.
//
//   const std::vector<FileOperation> operations =
//       RecordFileOperations(folder, [&](const Mark& mark) { Save(folder, 1); mark(1); return true; });
//
// The body runs in a child process whose system calls are traced (ptrace), so that nothing escapes: files of the C and
// C++ libraries, of HDF5 and of std::filesystem alike, on all of its threads. Only memory maps are not seen.
#ifndef PLAIT_BASE_TESTING_FILE_OPERATIONS_H_
#define PLAIT_BASE_TESTING_FILE_OPERATIONS_H_

#include <functional>
#include <string>
#include <vector>

namespace plait::base::testing {

struct FileOperation {
  enum class Kind { kMakeFile, kMakeFolder, kContent, kLink, kRemove, kRename, kExchange, kSync, kMark };

  Kind kind;
  std::string path = {};     // in the folder; "" is the folder itself
  std::string to = {};       // kLink, kRename, kExchange: the other path
  std::string content = {};  // kContent: the whole file after the call
  int mark = 0;              // kMark: the number
};

// "rename a b", for messages.
std::string Describe(const FileOperation& operation);

// Notes a number in the recording: at this point the body has promised something to its user.
using Mark = std::function<void(int number)>;

// The folder exists. Calls outside it and those that fail are left out; kMakeFile may name a file that exists. Ends the
// test's process if the body returns false, is killed, or leaves the folder (PLAIT_CHECK).
std::vector<FileOperation> RecordFileOperations(const std::string& folder,
                                                const std::function<bool(const Mark&)>& body);

}  // namespace plait::base::testing

#endif  // PLAIT_BASE_TESTING_FILE_OPERATIONS_H_
