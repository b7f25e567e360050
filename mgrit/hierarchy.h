// The states of all levels on one rank and the operations between levels, from which mgrit/solver.cc builds the
// cycles.
//
// The coarse equations are those of the full approximation scheme (FAS): on level l + 1 the unknowns U satisfy
//   U_k = Phi_c(U_{k-1}) + g_k,   g_k = R r_k + V_k - Phi_c(V_{k-1}),   V_k = R u_{km},
// with the residual r_k = Phi(u_{km-1}) + g_{km} - u_{km} of level l after F-relaxation; then u_{km} += P
// (U_k - V_k). (Falgout, Friedhoff, Kolev, MacLachlan, Schroder: Parallel time integration with multigrid,
// SIAM J. Sci. Comput. 36, 2014.)
#ifndef PLAIT_MGRIT_HIERARCHY_H_
#define PLAIT_MGRIT_HIERARCHY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "mgrit/grid.h"
#include "mgrit/options.h"
#include "mgrit/problem.h"

namespace plait::mgrit {

// Work of this rank.
struct WorkCount {
  std::vector<std::int64_t> steps;  // evaluations of Phi per level
  std::int64_t messages = 0;
  std::int64_t message_bytes = 0;
  double step_seconds = 0;  // inside the problem's steps
  double wait_seconds = 0;  // for the neighbours
};

class Hierarchy {
 public:
  // `problem` must outlive the hierarchy. Collective if states are on a CUDA device.
  Hierarchy(AnyProblem& problem, const Options& options, Grid grid, comm::Communicator communicator);
  ~Hierarchy();

  const Grid& grid() const { return grid_; }
  int levels() const { return grid_.levels(); }
  const WorkCount& work() const { return work_; }
  void ClearWork();

  // Sets StepInterval::iteration and progress of the following steps.
  void SetProgress(int iteration, double progress);
  // Sets the initial condition and the initial guess. With `keep_states`, the states of a previous solve, if there
  // was one, are the guess. Returns whether states were kept.
  bool Initialize(bool keep_states);
  // The state of an own point of level 0; null where it is not stored.
  const State* state(std::int64_t point) const;

  // Each is collective over the ranks that own steps of the level.

  // One F-sweep, then every C-point from the F-point before it.
  void FcSweep(int level);
  // F-sweep, residual at the C-points, and the equations of `level` + 1. With `norms`, records the norms of the
  // residual (AnyProblem::PutNorm), that of C-point k * cfactor in slot k - 1.
  void Restrict(int level, bool norms);
  // Restricts the initial guess of level 0 to all coarse levels, with zero right-hand sides.
  void RestrictGuess();
  // One F-sweep on `level`, every F-point from the C-point before it, then corrects the C-points of `level` - 1.
  // On the coarsest level, which is a single interval, the sweep is the exact solve. Points that are still valid
  // from the previous sweep are not recomputed.
  void Interpolate(int level);
  // Records the residual norms of the current states of level 0, in the slots of Restrict.
  void Residual();
  // Records, for every C-point of level 0 and in the slots of Restrict, the norm of the difference between the fine
  // steps and the coarse step from the C-point before it.
  void CoarseErrors();
  // Called instead of Problem::Initialize at all C-points but the first; empty: not used.
  using InitialGuess = std::function<void(std::int64_t point, State& u)>;
  void set_initial_guess(InitialGuess guess) { guess_ = std::move(guess); }
  // An F-sweep of level 0 over the C-intervals from `first_interval` on.
  void RelaxFrom(std::int64_t first_interval);
  // Receives the state of the left neighbour and steps through all own points of level 0, one after another.
  void SerialSweep();
  // Calls `visitor` for every own point except the ghost: intervals from right to left, points within an interval
  // from left to right, point 0 last. Computes F-points that are not stored or not up to date. `final` is
  // StepInterval::final of the steps that this takes.
  void Visit(const std::function<void(std::int64_t point, const State& u)>& visitor, bool final);
  // Waits for all pending sends. Local.
  void FinishMessages();

 private:
  struct Level;
  using States = std::vector<std::unique_ptr<State>>;
  // Directions at a C-point, and their images under the tangents of the steps since.
  struct Frame {
    States directions;
    States images;
  };
  // Called by a sweep at a point.
  using AtPoint = std::function<void(std::int64_t point, const State& state)>;

  Level& at(int level) { return *levels_[level]; }
  // Point 0 of every level, which no cycle changes, for the rank that owns the first step of the level.
  void ShareInitialState();
  StepInterval IntervalOf(const Level& level, std::int64_t index) const;
  // Invalidates steps that were computed with other tolerances.
  void ForgetSteps();
  const State* IterateAt(const Level& level, std::int64_t point) const;
  void Step(Level& level, std::int64_t index, const State& u, State& out);
  // out = Phi(before) + g at the C-point `point`.
  void StepToCPoint(Level& level, std::int64_t point, const State& before, State& out);
  // Adds the delta correction and the right-hand side of the level to out = Phi(u).
  void CompleteStep(Level& level, std::int64_t index, const State& u, State& out);
  // Delta correction (delta.cc).
  void FormDeltas(Level& fine, Level& coarse);
  void PropagateFrame(Level& level, std::int64_t from, std::int64_t to, Frame& frame);
  void TakeDelta(Level& fine, Level& coarse, std::int64_t coarse_point, Frame frame);
  void AddDelta(Level& level, std::int64_t point, const State& u, State& out);
  States DirectionsAt(const Level& coarse, std::int64_t point);
  States NewDirections(int level);
  bool Orthonormalize(const States& vectors);
  void SendStates(Level& level, const States& states, int rank);
  States ReceiveStates(Level& level, int rank);
  void AddRightHandSide(Level& level, std::int64_t point, State& u);
  // Computes the own F-points of an interval; returns the last of them (or the C-point, if there is none).
  // `at_passing_point` is called for those that are not stored.
  const State& March(Level& level, std::int64_t interval, const AtPoint& at_passing_point);
  // The same for all whole intervals at once, for problems with PrefersMany.
  void MarchTogether(Level& level);
  // `at_c_point` gets the C-point that ends an interval and the state of the point before it.
  void Sweep(Level& level, std::int64_t first_interval, const AtPoint& at_c_point,
             const AtPoint& at_passing_point = nullptr);
  // out = Phi(before) + g - u at the C-point `point`, or g - A of the problem's own equation.
  void ResidualAt(Level& level, std::int64_t point, const State& before, State& out);
  void RestrictCPoint(Level& fine, Level& coarse, std::int64_t point, const State& before, bool norms);
  void FormCoarseEquations(Level& coarse);
  void FormOwnEquations(Level& coarse);
  void RestrictState(Level& fine, Level& coarse, std::int64_t coarse_point);
  // V_k, until the level's cycle changes it.
  const State& RestrictedAt(const Level& coarse, std::int64_t point);
  void CorrectCPoint(Level& fine, Level& coarse, std::int64_t coarse_point, const State& corrected);
  void SolveWindows(Level& coarsest);
  void CloseCoarsestRing(Level& coarsest);
  void ReceiveCPoint(Level& level);  // the ghost, if it is a C-point
  void CPointsChanged(Level& level);
  void VisitInterval(Level& level, std::int64_t interval,
                     const std::function<void(std::int64_t point, const State& u)>& visitor);

  void Send(Level& level);     // the last own point, to the right
  void Receive(Level& level);  // the ghost, from the left
  void SendState(Level& level, const State& state, int rank);
  void ReceiveState(Level& level, State& state, int rank);
  comm::Buffer MemoryOf(State& state) const;

  AnyProblem& problem_;
  Options options_;
  Grid grid_;
  comm::Communicator communicator_;
  comm::Communicator transport_;    // of states
  bool sends_from_memory_ = false;  // messages need no packing
  std::vector<std::unique_ptr<Level>> levels_;
  WorkCount work_;
  bool final_sweep_ = false;
  int iteration_ = 0;
  double progress_ = 0;
  InitialGuess guess_;
  bool has_states_ = false;  // of a solve before
};

}  // namespace plait::mgrit

#endif  // PLAIT_MGRIT_HIERARCHY_H_
