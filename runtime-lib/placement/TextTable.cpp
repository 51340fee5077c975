// Columns are as wide as their widest cell.
#include "runtime-lib/placement/TextTable.h"

#include <algorithm>

namespace mcc::placement {

std::string TextTable::text() const {
  std::vector<size_t> widths(rows.empty() ? 0 : rows.front().size());
  for (const std::vector<std::string> &cells : rows)
    for (size_t i = 0; i < cells.size(); ++i)
      widths[i] = std::max(widths[i], cells[i].size());
  std::string out;
  for (const std::vector<std::string> &cells : rows)
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool last = i + 1 == cells.size();
      const std::string padding(widths[i] - cells[i].size(), ' ');
      if (i < leftColumns || (last && leftLast))
        out += cells[i] + (last ? "" : padding);
      else
        out += padding + cells[i];
      out += last ? "\n" : "  ";
    }
  return out;
}

} // namespace mcc::placement
