// The table of `mcc inspect FILE`: one line per tensor, names left, numbers right, then totals per type.
#include "compiler/Import/Checkpoint.h"

#include "compiler/Support/Error.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <map>

namespace mcc {

namespace {

/// One line of the table.
struct Row {
  std::string name, type, shape, bytes;
};

struct Total {
  uint64_t tensors = 0, bytes = 0;
  double elems = 0; ///< a sum over types may pass 2^63; exact below 2^53
};

/// Returns `text` on one line: a name may hold any character.
std::string oneLine(llvm::StringRef text) {
  bool plain =
      std::all_of(text.bytes_begin(), text.bytes_end(), [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
  return plain ? text.str() : quoted(text);
}

} // namespace

void printTensorTable(const Checkpoint &checkpoint, llvm::raw_ostream &os) {
  std::vector<Row> rows = {{"tensor", "type", "shape", "bytes"}};
  std::map<std::string, Total> totals;
  Total all;
  for (const TensorInfo &tensor : checkpoint.tensors()) {
    rows.push_back(
        {oneLine(tensor.name), tensor.typeName().str(), shapeText(tensor.shape), std::to_string(tensor.bytes)});
    for (Total *total : {&totals[tensor.typeName().str()], &all}) {
      ++total->tensors;
      total->bytes += tensor.bytes;
      total->elems += static_cast<double>(tensor.elems());
    }
  }
  size_t name = 0, type = 0, shape = 0, bytes = 0;
  for (const Row &row : rows) {
    name = std::max(name, row.name.size());
    type = std::max(type, row.type.size());
    shape = std::max(shape, row.shape.size());
    bytes = std::max(bytes, row.bytes.size());
  }
  for (const Row &row : rows)
    os << llvm::left_justify(row.name, name) << "  " << llvm::left_justify(row.type, type) << "  "
       << llvm::left_justify(row.shape, shape) << "  " << llvm::right_justify(row.bytes, bytes) << '\n';
  for (const auto &[text, total] : totals)
    os << llvm::formatv("{0}: {1} tensors, {2:F0} elements, {3} bytes\n", text, total.tensors, total.elems,
                        total.bytes);
  os << llvm::formatv("total: {0} tensors, {1:F0} elements, {2} bytes\n", all.tensors, all.elems, all.bytes);
}

} // namespace mcc
