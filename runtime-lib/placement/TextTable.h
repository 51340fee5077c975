// Rows of cells, printed with aligned columns.
#pragma once

#include <string>
#include <vector>

namespace mcc::placement {

class TextTable {
public:
  /// The first `leftColumns` columns are flush left, and the last where `leftLast`; the others right.
  explicit TextTable(size_t leftColumns, bool leftLast = false) : leftColumns(leftColumns), leftLast(leftLast) {}
  /// Adds a row; all have the same number of cells.
  void add(std::vector<std::string> cells) { rows.push_back(std::move(cells)); }
  /// Returns the rows as lines.
  std::string text() const;

private:
  size_t leftColumns;
  bool leftLast;
  std::vector<std::vector<std::string>> rows;
};

} // namespace mcc::placement
