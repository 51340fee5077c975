// Streams weights into the blob in batches of panels: rows are read from the checkpoint (joined sources follow each other),
// packed by several threads, each into its part of the batch, and appended in order. So memory stays small and the bytes
// do not depend on the number of threads.
#include "compiler/Artifact/PackWeights.h"

#include "compiler/Support/Error.h"
#include "compiler/Support/Progress.h"
#include "kernels/pack/Pack.h"
#include "kernels/reference/Dequantize.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <thread>

namespace mcc {
namespace {

constexpr uint64_t batchBytes = 32 << 20;

// One source of a weight: a whole tensor, or some rows of one.
class SourceRows {
public:
  SourceRows(const Checkpoint &checkpoint, mlir::Attribute source) : checkpoint(checkpoint) {
    part = mlir::dyn_cast<ir::SourceAttr>(source);
    tensor = checkpoint.find(part ? part.getTensor().getValue() : mlir::cast<mlir::StringAttr>(source).getValue());
    if (part && part.getTransposed())
      loadTransposed();
  }

  int64_t rows() const { return part ? part.getRows() * part.getGroups() : tensor->shape.size() == 1 ? tensor->elems() : tensor->rows(); }
  Format format() const { return tensor->format; }

  // Writes rows [row, row + count) of `cols` elements to `out`, in `wanted`: the tensor's own format, or f32.
  void readAs(Format wanted, int64_t row, int64_t count, int64_t cols, uint8_t *out) const {
    if (wanted == format())
      return read(row, count, formatBytes(wanted, cols), out);
    assert(wanted == Format::F32 && "weights are packed as stored, or in f32");
    std::vector<uint8_t> raw(count * formatBytes(format(), cols));
    read(row, count, formatBytes(format(), cols), raw.data());
    dequantize(format(), raw.data(), reinterpret_cast<float *>(out), count * cols);
  }

  // Returns all elements in f32.
  std::vector<float> floats() const {
    int64_t cols = isVector() ? 1 : tensor->cols();
    std::vector<float> values(rows() * cols);
    readAs(Format::F32, 0, rows(), cols, reinterpret_cast<uint8_t *>(values.data()));
    return values;
  }

private:
  // Writes rows [row, row + count) to `out`, `rowBytes` each. Elements of a vector count as rows.
  void read(int64_t row, int64_t count, int64_t rowBytes, uint8_t *out) const {
    if (!part && tensor->shape.size() > 1)
      return checkpoint.readRows(*tensor, row, count, out);
    for (int64_t i = row; i < row + count; ++i, out += rowBytes)
      readOne(storedRow(i), rowBytes, out);
  }

  // Returns the row of the stored tensor (column, where transposed) that is row `row` of the part.
  int64_t storedRow(int64_t row) const {
    if (!part)
      return row;
    int64_t inSlab = part.getFirst() + row / part.getRows() * part.getStride() + row % part.getRows();
    return isVector() || part.getSlab() < 0 || part.getTransposed() ? inSlab : part.getSlab() * tensor->shape[1] + inSlab;
  }

  void readOne(int64_t row, int64_t rowBytes, uint8_t *out) const {
    if (!elements.empty())
      std::copy_n(elements.data() + row * rowBytes, rowBytes, out);
    else if (!isVector())
      checkpoint.readRows(*tensor, row, 1, out);
    else
      std::copy_n(vector().data() + row * rowBytes, rowBytes, out);
  }

  // Whether the source is a vector: a tensor of one dimension, or a slab of one of two.
  bool isVector() const { return tensor->shape.size() == (part && part.getSlab() >= 0 ? 2u : 1u); }

  // The bytes of a vector, read once.
  const std::vector<uint8_t> &vector() const {
    if (whole.empty()) {
      bool slab = tensor->shape.size() > 1;
      whole.resize(formatBytes(tensor->format, slab ? tensor->cols() : tensor->elems()));
      checkpoint.readRows(*tensor, slab ? part.getSlab() : 0, 1, whole.data());
    }
    return whole;
  }

  // Reads an [in, out] matrix (or slab) and turns it to [out, in]. Element formats only: a block has no columns.
  void loadTransposed() {
    int64_t rank = static_cast<int64_t>(tensor->shape.size());
    int64_t in = tensor->shape[rank - 2], out = tensor->shape[rank - 1], bytes = formatInfo(tensor->format).blockBytes;
    std::vector<uint8_t> stored(in * out * bytes);
    checkpoint.readRows(*tensor, std::max<int64_t>(part.getSlab(), 0) * in, in, stored.data());
    elements.resize(stored.size());
    for (int64_t i = 0; i < in; ++i)
      for (int64_t o = 0; o < out; ++o)
        std::copy_n(stored.data() + (i * out + o) * bytes, bytes, elements.data() + (o * in + i) * bytes);
  }

  const Checkpoint &checkpoint;
  ir::SourceAttr part;
  const TensorInfo *tensor;
  std::vector<uint8_t> elements;      // of a transposed source, [out, in]
  mutable std::vector<uint8_t> whole; // of a vector
};

// Rows of several sources, one after the other.
class JoinedRows {
public:
  JoinedRows(const Checkpoint &checkpoint, mlir::ArrayAttr sources) {
    for (mlir::Attribute source : sources)
      parts.emplace_back(checkpoint, source);
  }

  // Writes rows [row, row + count) of the whole to `out`, in `wanted`.
  void readAs(Format wanted, int64_t row, int64_t count, int64_t cols, uint8_t *out) const {
    for (const SourceRows &part : parts) {
      int64_t take = std::clamp<int64_t>(part.rows() - row, 0, count);
      if (take > 0)
        part.readAs(wanted, row, take, cols, out);
      out += take * formatBytes(wanted, cols);
      count -= take;
      row = std::max<int64_t>(row - part.rows(), 0);
    }
  }

  llvm::ArrayRef<SourceRows> sources() const { return parts; }

private:
  std::vector<SourceRows> parts;
};

class Packer {
public:
  Packer(const Checkpoint &checkpoint, BlobWriter &writer, uint64_t total) : checkpoint(checkpoint), writer(writer), progress("packing", total) {}

  llvm::Error pack(exec::WeightOp op);
  llvm::Error pack(exec::ConstantOp op);

private:
  llvm::Error packMatrix(exec::WeightOp op, ir::WeightType type);
  llvm::Error packVector(exec::WeightOp op);
  llvm::Error append(const void *data, uint64_t bytes);
  // Appends zeros up to `address`, where the next weight is planned.
  llvm::Error alignTo(uint64_t address);

  const Checkpoint &checkpoint;
  BlobWriter &writer;
  Progress progress;
};

llvm::Error Packer::append(const void *data, uint64_t bytes) {
  if (!writer.append(data, bytes))
    return blobError(writer);
  progress.advance(bytes);
  return llvm::Error::success();
}

llvm::Error Packer::alignTo(uint64_t address) {
  assert(writer.segmentBytes() <= address && "weights are planned in program order");
  std::vector<uint8_t> zeros(address - writer.segmentBytes());
  return append(zeros.data(), zeros.size());
}

// Calls work(i) for i in [0, count) on all processors.
template <typename Work>
void parallelFor(int64_t count, Work work) {
  std::atomic<int64_t> next = 0;
  auto run = [&] {
    for (int64_t i; (i = next.fetch_add(1)) < count;)
      work(i);
  };
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < std::min<int64_t>(count, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(run);
  run();
  for (std::thread &thread : threads)
    thread.join();
}

// Makes -exp(e) of every element e: in double, so that the result is the nearest f32 but for rare ties.
void negateExponentials(llvm::MutableArrayRef<float> values) {
  for (float &value : values)
    value = static_cast<float>(-std::exp(static_cast<double>(value)));
}

llvm::Error Packer::packMatrix(exec::WeightOp op, ir::WeightType type) {
  Format format = type.getFormat();
  int64_t parts = op.getInterleaved() ? 2 : 1;
  int64_t rows = type.getShape()[0] / parts, cols = type.getShape()[1];
  int64_t rowBytes = formatBytes(format, cols), panelBytes = packedPanelBytes(format, cols) * parts;
  int64_t panels = (rows + kPackRows - 1) / kPackRows;
  int64_t batch = std::clamp<int64_t>(static_cast<int64_t>(batchBytes) / panelBytes, 1, panels);
  JoinedRows source(checkpoint, op.getSources());
  std::vector<uint8_t> out(batch * panelBytes);
  for (int64_t first = 0; first < panels; first += batch) {
    int64_t count = std::min(batch, panels - first);
    parallelFor(count, [&](int64_t i) {
      int64_t row = (first + i) * kPackRows, take = std::min(kPackRows, rows - row);
      std::vector<uint8_t> raw(take * rowBytes * parts);
      for (int64_t part = 0; part < parts; ++part) // the second part's rows follow all of the first's
        source.readAs(format, part * rows + row, take, cols, raw.data() + part * take * rowBytes);
      if (op.getNegatedExp())
        negateExponentials(llvm::MutableArrayRef(reinterpret_cast<float *>(raw.data()), raw.size() / sizeof(float)));
      uint8_t *to = out.data() + i * panelBytes;
      if (parts == 1)
        packPanels(format, raw.data(), rowBytes, take, cols, to);
      else
        packGatedPanels(format, raw.data(), raw.data() + take * rowBytes, rowBytes, take, cols, to);
    });
    if (llvm::Error error = append(out.data(), count * panelBytes))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error Packer::packVector(exec::WeightOp op) {
  JoinedRows source(checkpoint, op.getSources());
  float offset = static_cast<float>(op.getOffset().convertToDouble());
  std::vector<std::vector<float>> parts;
  for (const SourceRows &rows : source.sources()) {
    parts.push_back(rows.floats());
    for (float &value : parts.back())
      value += offset;
    if (op.getNegatedExp())
      negateExponentials(parts.back());
  }
  std::vector<float> out(op.getBytes() / sizeof(float));
  if (op.getInterleaved()) { // the first half of the sources are gates
    std::vector<float> gate, up;
    for (size_t i = 0; i < parts.size(); ++i) {
      std::vector<float> &half = i < parts.size() / 2 ? gate : up;
      half.insert(half.end(), parts[i].begin(), parts[i].end());
    }
    packGatedBias(gate.data(), up.data(), static_cast<int64_t>(gate.size()), out.data());
  } else {
    auto to = out.begin();
    for (const std::vector<float> &part : parts)
      to = std::copy(part.begin(), part.end(), to);
  }
  return append(out.data(), op.getBytes());
}

llvm::Error Packer::pack(exec::WeightOp op) {
  if (llvm::Error error = alignTo(*op.getAddress()))
    return error;
  auto type = mlir::cast<ir::WeightType>(op.getWeight());
  return type.getShape().size() == 1 ? packVector(op) : packMatrix(op, type);
}

llvm::Error Packer::pack(exec::ConstantOp op) {
  if (llvm::Error error = alignTo(*op.getAddress()))
    return error;
  std::vector<float> out(op.getBytes() / sizeof(float));
  std::copy(op.getValues().begin(), op.getValues().end(), out.begin());
  return append(out.data(), op.getBytes());
}

} // namespace

llvm::Error packWeights(exec::ProgramOp program, const Checkpoint &checkpoint, BlobWriter &writer) {
  Packer packer(checkpoint, writer, *program.getWeightBytes());
  for (mlir::Operation &op : program.getBody().front()) {
    llvm::Error error = llvm::Error::success();
    if (auto weight = mlir::dyn_cast<exec::WeightOp>(op))
      error = packer.pack(weight);
    else if (auto constant = mlir::dyn_cast<exec::ConstantOp>(op))
      error = packer.pack(constant);
    if (error)
      return error;
  }
  return llvm::Error::success();
}

// The writer is plain C++ and words its errors itself: "FILE: error: TEXT".
llvm::Error blobError(const BlobWriter &writer) {
  auto [where, what] = llvm::StringRef(writer.error()).split(": error: ");
  return llvm::make_error<Diagnosed>(where.str(), what.str());
}

} // namespace mcc
