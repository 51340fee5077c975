// Edit distance over short names: the two-row dynamic programme of Wagner and Fischer, ASCII case folded, as a
// typing error in a field name is rarely worth telling apart from a wrong capital.
#include "compiler/Support/Suggest.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <numeric>

namespace mcc {

static size_t editDistance(llvm::StringRef from, llvm::StringRef to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < to.size(); ++j) {
      bool same = llvm::toLower(from[i]) == llvm::toLower(to[j]);
      size_t substituted = diagonal + (same ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

llvm::StringRef nearestName(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> candidates) {
  // A name from a file can be megabytes long; no field is.
  if (name.size() > 100)
    return {};
  llvm::StringRef best;
  size_t bestDistance = std::max<size_t>(1, name.size() / 3) + 1;
  for (llvm::StringRef candidate : candidates) {
    size_t distance = editDistance(name, candidate);
    if (distance < bestDistance && distance < candidate.size()) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

std::string suggestName(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> candidates) {
  llvm::StringRef best = nearestName(name, candidates);
  return best.empty() ? "" : ("; did you mean '" + best + "'?").str();
}

std::string quotedList(llvm::ArrayRef<llvm::StringRef> names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i != 0)
      text += i + 1 == names.size() ? " and " : ", ";
    text += ("'" + names[i] + "'").str();
  }
  return text;
}

} // namespace mcc
