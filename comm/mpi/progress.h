// Operations of several steps, which move on only when their process calls: all that a rank has under way, on
// all communicators of its session. Private to comm/mpi.
//
//   progress->Add(&operation);
//   progress->WaitFor(operation);
//
// Whoever waits for one operation moves all of them on. Ranks may therefore wait for them in any order: none
// stands still because a rank it needs is waiting for another one. One thread at a time.
#ifndef PLAIT_COMM_MPI_PROGRESS_H_
#define PLAIT_COMM_MPI_PROGRESS_H_

#include <vector>

namespace plait::comm {

class Progress {
 public:
  // `oversubscribed`: this node has more ranks than cores, so that waits must leave the cores to others.
  explicit Progress(bool oversubscribed) : oversubscribed_(oversubscribed) {}

  class Task {
   public:
    virtual ~Task() = default;
    // Does what can be done without waiting; true if there was something. May throw TransportError.
    virtual bool Advance() = 0;
    virtual bool complete() const = 0;
  };

  // Kept, not owned, until it is complete or removed.
  void Add(Task* task) { under_way_.push_back(task); }
  void Remove(const Task* task) { std::erase(under_way_, task); }

  // Once through all, the oldest first; true if one of them moved.
  bool AdvanceAll();
  // `task` has been added. MPI moves on, too.
  void WaitFor(const Task& task);

 private:
  bool oversubscribed_;
  std::vector<Task*> under_way_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_MPI_PROGRESS_H_
