// What all checkpoints share (lookup, reading rows), and finding out what the path a user gave holds.
//
// A file is taken for what its name says (.gguf, .safetensors, .safetensors.index.json); a file with another name,
// such as a blob of a download cache, for what its first bytes say.
#include "compiler/Import/Checkpoint.h"

#include "compiler/Import/Gguf.h"
#include "compiler/Import/MappedCheckpoint.h"
#include "compiler/Import/Safetensors.h"
#include "compiler/Support/Error.h"
#include "compiler/Support/MappedFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cassert>
#include <cstring>

namespace mcc {

llvm::StringRef TensorInfo::typeName() const {
  if (!otherType.empty())
    return otherType;
  return storedAs.empty() ? llvm::StringRef(formatInfo(format).name) : llvm::StringRef(storedAs);
}

int64_t TensorInfo::elems() const { return rows() * cols(); }

int64_t TensorInfo::cols() const { return shape.empty() ? 1 : shape.back(); }

int64_t TensorInfo::rows() const {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    rows *= shape[i];
  return rows;
}

std::string shapeText(llvm::ArrayRef<int64_t> shape) {
  return "[" + llvm::join(llvm::map_range(shape, [](int64_t dim) { return std::to_string(dim); }), ", ") + "]";
}

const TensorInfo *Checkpoint::find(llvm::StringRef name) const {
  const std::vector<TensorInfo> &all = tensors();
  auto found = llvm::lower_bound(all, name, [](const TensorInfo &t, llvm::StringRef name) { return t.name < name; });
  return found != all.end() && found->name == name ? &*found : nullptr;
}

void Checkpoint::readRows(const TensorInfo &tensor, int64_t row, int64_t count, uint8_t *out) const {
  assert(tensor.otherType.empty() && !tensor.absent && "the tensor has no numbers to read");
  assert(row >= 0 && count >= 0 && row + count <= tensor.rows() && "rows outside the tensor");
  uint64_t rowBytes = static_cast<uint64_t>(formatBytes(tensor.format, tensor.cols()));
  if (count > 0 && rowBytes > 0)
    std::memcpy(out, tensor.data + row * rowBytes, count * rowBytes);
}

MappedCheckpoint::MappedCheckpoint(std::string name, std::vector<TensorInfo> tensors,
                                   std::vector<std::shared_ptr<const void>> owners,
                                   std::shared_ptr<const GgufFile> metadata)
    : checkpointName(std::move(name)), tensorList(std::move(tensors)), owners(std::move(owners)),
      metadata(std::move(metadata)) {
  llvm::sort(tensorList, [](const TensorInfo &a, const TensorInfo &b) { return a.name < b.name; });
}

using OpenedCheckpoint = llvm::Expected<std::unique_ptr<Checkpoint>>;

/// Opens a file whose name does not say what it is.
static OpenedCheckpoint openByContents(llvm::StringRef path) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  llvm::ArrayRef<uint8_t> bytes = (*file)->contents();
  llvm::StringRef start(reinterpret_cast<const char *>(bytes.data()), std::min<size_t>(bytes.size(), 9));
  if (start.starts_with("GGUF"))
    return openGguf(path);
  if (start.size() == 9 && start.back() == '{')
    return openSafetensors(path);
  if (start.starts_with("PK") || start.starts_with("\x80"))
    return diagnose(path.str(), "looks like a PyTorch pickle; mcc reads safetensors and GGUF; save the model with "
                                "safe_serialization=True");
  return diagnose(path.str(), "is neither safetensors nor GGUF: its name does not say so, and it begins with {0}",
                  quoted(start.take_front(4)));
}

static OpenedCheckpoint openFile(llvm::StringRef path) {
  if (path.ends_with(".index.json"))
    return openSafetensorsIndex(path);
  if (path.ends_with(".gguf"))
    return openGguf(path);
  if (path.ends_with(".safetensors"))
    return openSafetensors(path);
  return openByContents(path);
}

/// Returns the names in directory `path`, sorted.
static llvm::Expected<std::vector<std::string>> listDirectory(llvm::StringRef path) {
  std::vector<std::string> names;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(path, code), end; it != end && !code; it.increment(code))
    names.push_back(llvm::sys::path::filename(it->path()).str());
  if (code)
    return diagnose(path.str(), "cannot be listed: {0}", code.message());
  llvm::sort(names);
  return names;
}

/// Returns at most eight of `names` in quotes, for a message.
static std::string listed(llvm::ArrayRef<std::string> names) {
  constexpr size_t kShown = 8;
  std::string text =
      llvm::join(llvm::map_range(names.take_front(kShown), [](auto &name) { return quoted(name); }), ", ");
  return names.size() <= kShown ? text : text + " and " + std::to_string(names.size() - kShown) + " more";
}

/// Returns whether `name` is a part of a split GGUF set other than the first.
static bool isLaterSplitPart(llvm::StringRef name) {
  // NAME-00002-of-00005.gguf
  constexpr size_t kSuffix = 20;
  if (name.size() < kSuffix)
    return false;
  llvm::StringRef suffix = name.take_back(kSuffix);
  return suffix.substr(6, 4) == "-of-" && suffix[0] == '-' && llvm::all_of(suffix.substr(1, 5), llvm::isDigit) &&
         suffix.substr(1, 5) != "00001";
}

static OpenedCheckpoint openDirectory(llvm::StringRef path) {
  auto names = listDirectory(path);
  if (!names)
    return names.takeError();
  std::string chosen;
  for (const char *fixed : {"model.safetensors", "model.safetensors.index.json"})
    if (chosen.empty() && llvm::is_contained(*names, fixed))
      chosen = fixed;
  for (llvm::StringRef ending : {".safetensors.index.json", ".safetensors", ".gguf"}) {
    if (!chosen.empty())
      break;
    std::vector<std::string> fitting;
    llvm::copy_if(*names, std::back_inserter(fitting), [&](llvm::StringRef name) {
      return name.ends_with(ending) && !(ending == ".gguf" && isLaterSplitPart(name));
    });
    if (fitting.size() > 1)
      return diagnose(path.str(), "holds {0} *{1} files and no model.safetensors: {2}; name one of them",
                      fitting.size(), ending, listed(fitting));
    if (fitting.size() == 1)
      chosen = fitting.front();
  }
  if (chosen.empty())
    return diagnose(
        path.str(),
        "holds no checkpoint; needed: model.safetensors, model.safetensors.index.json, or one *.safetensors "
        "or *.gguf file; found: {0}",
        names->empty() ? "nothing" : listed(*names));
  llvm::SmallString<256> full = path;
  llvm::sys::path::append(full, chosen);
  return openFile(full);
}

OpenedCheckpoint openCheckpoint(llvm::StringRef path) {
  return llvm::sys::fs::is_directory(path) ? openDirectory(path) : openFile(path);
}

} // namespace mcc
