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
#include <thread>

namespace mcc {
namespace {

constexpr uint64_t batchBytes = 32 << 20;

// Rows of several tensors, one after the other.
class JoinedRows {
public:
  JoinedRows(const Checkpoint &checkpoint, mlir::ArrayAttr sources) : checkpoint(checkpoint) {
    for (mlir::Attribute source : sources)
      tensors.push_back(checkpoint.find(mlir::cast<mlir::StringAttr>(source).getValue()));
  }

  // Writes rows [row, row + count) of the whole to `out`.
  void read(int64_t row, int64_t count, int64_t rowBytes, uint8_t *out) const {
    for (const TensorInfo *tensor : tensors) {
      int64_t take = std::clamp<int64_t>(tensor->rows() - row, 0, count);
      if (take > 0)
        checkpoint.readRows(*tensor, row, take, out);
      out += take * rowBytes;
      count -= take;
      row = std::max<int64_t>(row - tensor->rows(), 0);
    }
  }

  llvm::ArrayRef<const TensorInfo *> parts() const { return tensors; }

private:
  const Checkpoint &checkpoint;
  std::vector<const TensorInfo *> tensors;
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
    return diagnose("", "{0}", llvm::StringRef(writer.error()));
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
        source.read(part * rows + row, take, rowBytes, raw.data() + part * take * rowBytes);
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

// Returns all elements of `tensor` in f32.
std::vector<float> readFloats(const Checkpoint &checkpoint, const TensorInfo &tensor) {
  std::vector<uint8_t> raw(formatBytes(tensor.format, tensor.elems()));
  checkpoint.readRows(tensor, 0, tensor.rows(), raw.data());
  std::vector<float> values(tensor.elems());
  dequantize(tensor.format, raw.data(), values.data(), tensor.elems());
  return values;
}

llvm::Error Packer::packVector(exec::WeightOp op) {
  JoinedRows source(checkpoint, op.getSources());
  float offset = static_cast<float>(op.getOffset().convertToDouble());
  std::vector<std::vector<float>> parts;
  for (const TensorInfo *tensor : source.parts()) {
    parts.push_back(readFloats(checkpoint, *tensor));
    for (float &value : parts.back())
      value += offset;
  }
  std::vector<float> out(op.getBytes() / sizeof(float));
  if (op.getInterleaved()) {
    packGatedBias(parts[0].data(), parts[1].data(), static_cast<int64_t>(parts[0].size()), out.data());
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

} // namespace mcc
