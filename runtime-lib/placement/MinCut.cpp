// Dinic's algorithm: levels are distances to the sink in the residual graph; augmenting paths go down one level a
// step, each found by a depth-first walk that never tries an edge twice between two computations of the levels.
// Levels are counted from the sink, so that when no path is left they also tell the sink's side of the cut.
#include "runtime-lib/placement/MinCut.h"

#include <algorithm>

namespace mcc::placement {

uint32_t MinCut::addEdge(uint32_t from, uint32_t to, int64_t capacity) {
  const uint32_t edge = static_cast<uint32_t>(heads.size());
  heads.push_back(to);
  heads.push_back(from);
  residual.push_back(capacity);
  residual.push_back(0);
  return edge;
}

/// Sorts the edges by the node that they leave.
void MinCut::index() {
  if (leaving.size() == heads.size() && !first.empty())
    return;
  first.assign(nodeCount + 1, 0);
  for (size_t edge = 0; edge < heads.size(); ++edge)
    ++first[heads[edge ^ 1] + 1];
  for (uint32_t node = 0; node < nodeCount; ++node)
    first[node + 1] += first[node];
  std::vector<uint32_t> next(first.begin(), first.end() - 1);
  leaving.resize(heads.size());
  for (uint32_t edge = 0; edge < heads.size(); ++edge)
    leaving[next[heads[edge ^ 1]]++] = edge;
}

/// Computes the levels; returns whether the source can reach the sink.
bool MinCut::findLevels() {
  level.assign(nodeCount, -1);
  queue.assign(1, sink);
  level[sink] = 0;
  for (size_t at = 0; at < queue.size(); ++at) {
    const uint32_t node = queue[at];
    for (uint32_t i = first[node]; i < first[node + 1]; ++i) {
      const uint32_t edge = leaving[i], from = heads[edge];
      if (level[from] < 0 && residual[edge ^ 1] > 0) {
        level[from] = level[node] + 1;
        queue.push_back(from);
      }
    }
  }
  return level[source] >= 0;
}

/// Returns an edge down from `node` with capacity left, or UINT32_MAX.
uint32_t MinCut::advance(uint32_t node) {
  for (uint32_t &i = cursor[node]; i < first[node + 1]; ++i) {
    const uint32_t edge = leaving[i];
    if (residual[edge] > 0 && level[heads[edge]] == level[node] - 1)
      return edge;
  }
  return UINT32_MAX;
}

/// Saturates every path of the level graph; returns the flow added.
int64_t MinCut::augment() {
  cursor.assign(first.begin(), first.end() - 1);
  path.clear();
  int64_t added = 0;
  for (uint32_t node = source;;) {
    if (node == sink) {
      int64_t least = infinite;
      for (const uint32_t edge : path)
        least = std::min(least, residual[edge]);
      size_t keep = path.size();
      for (size_t i = path.size(); i-- > 0;) {
        residual[path[i]] -= least;
        residual[path[i] ^ 1] += least;
        if (residual[path[i]] == 0)
          keep = i;
      }
      added += least;
      if (keep == path.size() || flow + added >= infinite)
        return added; // nothing saturated: an infinite path
      // Go on from the tail of the first edge that is full.
      node = heads[path[keep] ^ 1];
      path.resize(keep);
    }
    if (const uint32_t edge = advance(node); edge != UINT32_MAX) {
      path.push_back(edge);
      node = heads[edge];
      continue;
    }
    if (node == source)
      return added;
    level[node] = -1; // a dead end of this level graph
    node = heads[path.back() ^ 1];
    path.pop_back();
  }
}

int64_t MinCut::run() {
  index();
  while (flow < infinite && findLevels())
    flow += augment();
  return flow;
}

} // namespace mcc::placement
