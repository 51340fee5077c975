// Makes small checkpoint files for the import tests: well-formed by default, broken where a case asks for it.
#pragma once

#include "llvm/Support/Error.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <type_traits>
#include <vector>

namespace mcc::test {

/// A directory that goes with the object.
class TempDirectory {
public:
  TempDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mcc checkpoint XXXXXX").string();
    root = ::mkdtemp(pattern.data());
  }
  ~TempDirectory() { std::filesystem::remove_all(root); }
  std::string path(const std::string &name = "") const { return name.empty() ? root.string() : (root / name).string(); }
  /// Writes `contents` to `name` and returns the path.
  std::string write(const std::string &name, const std::string &contents) const {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream(root / name, std::ios::binary) << contents;
    return path(name);
  }

private:
  std::filesystem::path root;
};

/// Returns the little-endian bytes of `value`.
template <typename T>
std::string bytesOf(T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::string text(sizeof(T), '\0');
  std::memcpy(text.data(), &value, sizeof(T));
  return text;
}

/// Returns a safetensors file of `header` (as it is) and `data`.
inline std::string safetensors(const std::string &header, const std::string &data) {
  return bytesOf<uint64_t>(header.size()) + header + data;
}

/// Returns a length and the text, as GGUF writes strings.
inline std::string ggufString(const std::string &text) { return bytesOf<uint64_t>(text.size()) + text; }

/// Returns one metadata entry; `value` is its payload.
inline std::string ggufEntry(const std::string &key, uint32_t type, const std::string &value) {
  return ggufString(key) + bytesOf(type) + value;
}

/// Returns the description of one tensor.
inline std::string ggufTensor(const std::string &name, std::vector<int64_t> dims, uint32_t type, uint64_t offset) {
  std::string text = ggufString(name) + bytesOf(static_cast<uint32_t>(dims.size()));
  for (int64_t dim : dims)
    text += bytesOf(dim);
  return text + bytesOf(type) + bytesOf(offset);
}

/// The parts of a GGUF file; fields may be set to lies before text() is asked for.
struct GgufBuilder {
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::vector<std::string> entries, tensors;
  std::string data;
  uint64_t alignment = 32;
  int64_t extraTensors = 0, extraEntries = 0; ///< added to the counts in the header

  std::string text() const {
    std::string text = magic + bytesOf(version) + bytesOf<uint64_t>(tensors.size() + extraTensors) +
                       bytesOf<uint64_t>(entries.size() + extraEntries);
    for (const std::string &entry : entries)
      text += entry;
    for (const std::string &tensor : tensors)
      text += tensor;
    text.resize((text.size() + alignment - 1) / alignment * alignment);
    return text + data;
  }
};

/// Returns the message of `result`, or "" where it holds a value.
template <typename T>
std::string messageOf(llvm::Expected<T> result) {
  return result ? "" : llvm::toString(result.takeError());
}

inline std::string messageOf(llvm::Error error) { return error ? llvm::toString(std::move(error)) : ""; }

/// Returns whether `text` holds `part`; a failing CHECK shows both.
inline bool holds(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

} // namespace mcc::test
