// Records the file operations of a program in a directory, system call by system call.
//
//   const std::vector<FileOperation> operations =
//       RecordFileOperations(folder, [&](const Mark& mark) { Save(folder, 1); mark(1); return true; });
//
// The body runs in a child process whose system calls are traced (ptrace), whether they come from the C or C++ library,
// HDF5 or std::filesystem, on all of its threads and of the processes that it starts, in one order: a call is recorded
// before its process goes on. Not seen: memory maps, truncate(2) by path, and symbolic links.
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
  // kSync: the number of operations recorded before the call began. It may miss those of other threads after.
  int covers = 0;
};

// 'rename "a" "b"', for messages.
std::string Describe(const FileOperation& operation);

// Records a number: the body has guaranteed something to its user by now, such as a saved checkpoint.
using Mark = std::function<void(int number)>;

// The same in a program that the body runs.
void WriteMark(int number);

// `folder` must exist. Omits calls outside it and calls that fail; kMakeFile may name a file that exists already.
// Aborts (PLAIT_CHECK) if the body returns false, is killed, or renames or links across the folder's boundary.
std::vector<FileOperation> RecordFileOperations(const std::string& folder,
                                                const std::function<bool(const Mark&)>& body);

}  // namespace plait::base::testing

#endif  // PLAIT_BASE_TESTING_FILE_OPERATIONS_H_
