// The operations that a process has in flight, on all communicators of its session, and the wait that
// advances all of them. Private to comm/mpi.
//
//   progress->Add(&operation);
//   progress->WaitFor(operation);
//
// Operations with several stages advance only inside calls of their process. Since waiting for one operation advances
// all of them, ranks may wait in any order without deadlock. Not thread-safe.
#ifndef PLAIT_COMM_MPI_PROGRESS_H_
#define PLAIT_COMM_MPI_PROGRESS_H_

#include <vector>

namespace plait::comm {

class Progress {
 public:
  // `oversubscribed`: this node has more ranks than cores, so a waiting rank must yield its core.
  explicit Progress(bool oversubscribed) : oversubscribed_(oversubscribed) {}

  class Task {
   public:
    virtual ~Task() = default;
    // Makes as much progress as possible without blocking. Returns true if it made any. May throw TransportError.
    virtual bool Advance() = 0;
    virtual bool complete() const = 0;
  };

  // Not owned; removed when complete.
  void Add(Task* task) { under_way_.push_back(task); }
  void Remove(const Task* task) { std::erase(under_way_, task); }

  // Advances each operation once, oldest first. Returns true if any of them did something.
  bool AdvanceAll();
  // The same, and drives MPI's own progress, also if no operation with several stages is in flight: of a long message MPI
  // sends the rest only in calls of the sender.
  void Poll();
  // Blocks until `task`, which must have been added, is complete. Also drives MPI's own progress.
  void WaitFor(const Task& task);

 private:
  bool oversubscribed_;
  std::vector<Task*> under_way_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_PROGRESS_H_
