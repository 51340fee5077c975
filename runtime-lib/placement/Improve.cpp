// Local search under a memory cap. A decoder's layers are alike, so at the critical price all of them move at once and
// the two plans around it are often "nothing" and "everything". Between them lie plans that move a run of units:
//   1. runs: of the units in which the plans differ, in order of execution and around the end, every longest run
//      that fits (two pointers) moves to the GPU: consecutive layers share one pair of copies;
//   2. moves: every short run of units to either device, best gain per byte first, while any helps;
//   3. exchanges: a unit leaves the GPU for another that saves more.
// All steps are deterministic and counted in flips, not in time.
#include "runtime-lib/placement/Improve.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace mcc::placement {

namespace {

/// A run of units that moves to one device, and what it changes.
struct Move {
  uint32_t begin = 0, end = 0;
  Device to = Device::Cpu;
  double gainNs = 0;
  double addedBytes = 0;
  /// Moves that free memory or cost none come first, then by gain per byte.
  double worth() const { return addedBytes > 0 ? gainNs / addedBytes : std::numeric_limits<double>::max(); }
};

class Search {
public:
  Search(const Problem &problem, const Units &units, uint64_t cap, std::vector<Device> start, int64_t flips,
         double goal)
      : units(units), cap(cap), flipLimit(flips), goal(goal), state(problem, units, std::move(start)),
        best(state.devices()), bestCost(state.cost()) {}

  void tryRuns(const std::vector<Device> &above);
  void localSearch();
  std::vector<Device> result() { return std::move(best); }

private:
  bool spent() const { return state.flips() >= flipLimit || bestCost <= goal; }
  bool improves(double cost, double than) const { return cost < than * (1 - 1e-12); }
  bool fits() const { return state.bytes() <= cap; }
  void record();
  void restore();
  void undo(std::vector<uint32_t> &flipped);
  Move bestMoveAt(uint32_t begin, Device to);
  bool apply(const Move &move);
  bool sweepMoves();
  bool sweepExchanges();
  bool exchange(uint32_t out);
  uint32_t count() const { return static_cast<uint32_t>(units.ops.size()); }

  /// Units in the longest run that step 2 moves: more than a decoder layer has.
  static constexpr uint32_t longestRun = 16;
  const Units &units;
  const uint64_t cap;
  const int64_t flipLimit;
  const double goal;
  PlanState state;
  std::vector<Device> best;
  double bestCost;
};

} // namespace

/// Keeps the state if it fits and is the best so far.
void Search::record() {
  if (!fits() || !improves(state.cost(), bestCost))
    return;
  best = state.devices();
  bestCost = state.cost();
}

/// Returns to the best placement.
void Search::restore() {
  for (uint32_t unit = 0; unit < count(); ++unit)
    if (state.device(unit) != best[units.ops[unit].front()])
      state.flip(unit);
}

void Search::undo(std::vector<uint32_t> &flipped) {
  for (; !flipped.empty(); flipped.pop_back())
    state.flip(flipped.back());
}

void Search::tryRuns(const std::vector<Device> &above) {
  std::vector<uint32_t> differing;
  for (uint32_t unit = 0; unit < count(); ++unit)
    if (state.device(unit) == Device::Cpu && above[units.ops[unit].front()] == Device::Gpu)
      differing.push_back(unit);
  const size_t size = differing.size();
  size_t begin = 0;
  for (size_t end = 0; end < 2 * size && begin < size; ++end) {
    state.flip(differing[end % size]);
    // The run never meets its own beginning: all of `differing` does not fit, or it would be `above`.
    while (begin <= end && (!fits() || end - begin + 1 >= size))
      state.flip(differing[begin++ % size]);
    record();
  }
  restore();
}

/// Finds the best run that begins at a unit and moves to `to`.
Move Search::bestMoveAt(uint32_t begin, Device to) {
  Move move{begin, begin, to};
  std::vector<uint32_t> flipped;
  const double cost = state.cost();
  const double bytes = static_cast<double>(state.bytes());
  for (uint32_t end = begin; end < count() && end - begin < longestRun; ++end) {
    if (state.device(end) == to)
      continue;
    if (units.fixed[end])
      break;
    state.flip(end);
    flipped.push_back(end);
    if (!fits() && to == Device::Gpu)
      break;
    Move longer{begin, end + 1, to, cost - state.cost(), static_cast<double>(state.bytes()) - bytes};
    if (improves(state.cost(), cost) && (move.gainNs <= 0 || longer.worth() > move.worth() ||
                                         (longer.worth() == move.worth() && longer.gainNs > move.gainNs)))
      move = longer;
  }
  undo(flipped);
  return move;
}

/// Makes a move if it still helps and fits; returns whether.
bool Search::apply(const Move &move) {
  std::vector<uint32_t> flipped;
  const double cost = state.cost();
  for (uint32_t unit = move.begin; unit < move.end; ++unit)
    if (state.device(unit) != move.to && !units.fixed[unit]) {
      state.flip(unit);
      flipped.push_back(unit);
    }
  if (fits() && improves(state.cost(), cost))
    return true;
  undo(flipped);
  return false;
}

/// Makes the best moves of step 2, in order; returns whether any helped.
bool Search::sweepMoves() {
  std::vector<Move> moves;
  for (uint32_t unit = 0; unit < count() && !spent(); ++unit) {
    if (units.fixed[unit])
      continue;
    if (Move move = bestMoveAt(unit, other(state.device(unit))); move.gainNs > 0)
      moves.push_back(move);
  }
  std::sort(moves.begin(), moves.end(), [](const Move &a, const Move &b) {
    return std::tuple(-a.worth(), -a.gainNs, a.begin) < std::tuple(-b.worth(), -b.gainNs, b.begin);
  });
  bool helped = false;
  for (const Move &move : moves)
    helped |= apply(move);
  record();
  return helped;
}

/// Takes unit `out` off the GPU and puts on whatever helps most; keeps that if the whole is better.
bool Search::exchange(uint32_t out) {
  const double cost = state.cost();
  std::vector<uint32_t> flipped = {out};
  state.flip(out);
  for (bool added = true; added && !spent();) {
    added = false;
    Move bestMove;
    for (uint32_t unit = 0; unit < count(); ++unit) {
      if (unit == out || units.fixed[unit] || state.device(unit) == Device::Gpu)
        continue;
      const Move move = bestMoveAt(unit, Device::Gpu);
      if (move.gainNs > bestMove.gainNs)
        bestMove = move;
    }
    for (uint32_t unit = bestMove.begin; unit < bestMove.end; ++unit)
      if (unit != out && state.device(unit) == Device::Cpu) {
        state.flip(unit);
        flipped.push_back(unit);
        added = true;
      }
  }
  if (fits() && improves(state.cost(), cost))
    return true;
  undo(flipped);
  return false;
}

/// Tries an exchange for every unit on the GPU; returns whether any helped.
bool Search::sweepExchanges() {
  bool helped = false;
  for (uint32_t unit = 0; unit < count() && !spent(); ++unit)
    if (!units.fixed[unit] && state.device(unit) == Device::Gpu)
      helped |= exchange(unit);
  record();
  return helped;
}

void Search::localSearch() {
  while (!spent() && (sweepMoves() || sweepExchanges())) {
  }
  record();
  restore();
}

std::vector<Device> improve(const Problem &problem, const Units &units, uint64_t cap, std::vector<Device> below,
                            const std::vector<Device> &above, int64_t flips, double goalNs) {
  // From the best run, and from the plan that fits: neither is always the better start.
  Search runs(problem, units, cap, below, flips / 2, goalNs);
  runs.tryRuns(above);
  runs.localSearch();
  std::vector<Device> a = runs.result();
  const double costOfA = evaluate(problem, a).totalNs();
  if (costOfA <= goalNs)
    return a;
  Search plain(problem, units, cap, std::move(below), flips / 2, goalNs);
  plain.localSearch();
  std::vector<Device> b = plain.result();
  return evaluate(problem, b).totalNs() < costOfA ? b : a;
}

} // namespace mcc::placement
