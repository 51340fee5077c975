// The least cut between a source and a sink of a directed graph with integer capacities (Dinic's algorithm).
#pragma once

#include <cstdint>
#include <vector>

namespace mcc::placement {

/// A flow network. Add all edges, then call run(); capacities may grow between runs, and the flow found so far is
/// kept, so that a sequence of growing capacities costs little more than its last member.
class MinCut {
public:
  /// More than any sum of finite capacities may be.
  static constexpr int64_t infinite = int64_t(1) << 60;

  /// Makes a network of `nodes` nodes, 0 the source and 1 the sink, without edges.
  explicit MinCut(uint32_t nodes) : nodeCount(nodes) {}
  static constexpr uint32_t source = 0, sink = 1;

  /// Adds an edge, cut where `from` is on the source's side and `to` on the sink's; returns its number.
  uint32_t addEdge(uint32_t from, uint32_t to, int64_t capacity);
  /// Adds to the capacity of an edge; not after which a run of the same object has given a smaller one.
  void grow(uint32_t edge, int64_t capacity) { residual[edge] += capacity; }

  /// Finds the greatest flow and returns its value, at least `infinite` where every cut has an infinite edge.
  int64_t run();
  /// After run(): is the node on the sink's side of the least cut that has the fewest nodes there?
  bool onSinkSide(uint32_t node) const { return level[node] >= 0; }

private:
  void index();
  bool findLevels();
  int64_t augment();
  uint32_t advance(uint32_t node);

  uint32_t nodeCount;
  std::vector<uint32_t> heads;   ///< edge -> node it leads to; edge ^ 1 is its reverse
  std::vector<int64_t> residual; ///< edge -> capacity left
  std::vector<uint32_t> first;   ///< [nodes + 1] into `leaving`
  std::vector<uint32_t> leaving; ///< edges by the node they leave
  std::vector<int32_t> level;    ///< distance to the sink in the residual graph, -1: cannot reach it
  std::vector<uint32_t> cursor;  ///< next of `leaving` to try
  std::vector<uint32_t> queue, path;
  int64_t flow = 0;
};

} // namespace mcc::placement
