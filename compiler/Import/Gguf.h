// GGUF v2 and v3, little-endian: metadata and tensors of one file, everything checked when it is opened.
//
// The file stays mapped; metadata values are views into it. `GgufFile` is what importers read keys from,
// `openGguf` makes a `Checkpoint` of a file or of a split set (NAME-00001-of-0000N.gguf).
#pragma once

#include "compiler/Import/Checkpoint.h"
#include "compiler/Support/MappedFile.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"

#include <optional>

namespace mcc {

/// The type of a metadata value; the numbers are the format's.
enum class GgufType : uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64 };

/// Returns "u8", "string", ...; `type` must be one of the enumerators.
llvm::StringRef ggufTypeName(GgufType type);

/// The type of a tensor as ggml numbers it, for every type ggml has, computed with or not.
struct GgmlTypeInfo {
  uint32_t id;
  llvm::StringRef name;
  uint64_t blockElems, blockBytes;
};

/// Returns the facts of ggml_type `id`, or null where ggml has no such type (or has removed it).
const GgmlTypeInfo *ggmlTypeInfo(uint32_t id);

/// One metadata value: a view into the mapped file, checked to lie inside it.
class GgufValue {
public:
  GgufValue() = default;
  GgufValue(GgufType type, GgufType element, uint64_t count, llvm::ArrayRef<uint8_t> bytes)
      : valueType(type), element(element), count(count), bytes(bytes) {}
  GgufType type() const { return valueType; }
  /// The element type of an array; the value's own type otherwise.
  GgufType elementType() const { return element; }
  /// Elements of an array; 1 otherwise.
  uint64_t size() const { return count; }
  /// "u32", "array of 3 string".
  std::string typeName() const;

  /// Each returns nothing where the value is of another kind (or, for an integer, does not fit).
  std::optional<int64_t> asInt() const;  ///< any integer type
  std::optional<double> asFloat() const; ///< f32, f64 or any integer type
  std::optional<bool> asBool() const;
  std::optional<llvm::StringRef> asString() const;
  std::optional<std::vector<llvm::StringRef>> asStrings() const; ///< array of string; the views are into the file

  /// Element `index` of an array of integers or floats; `index` < size().
  std::optional<int64_t> intAt(uint64_t index) const;
  std::optional<double> floatAt(uint64_t index) const;
  bool isNumberArray() const;
  /// Element `index` of an array of bools; `index` < size().
  bool boolAt(uint64_t index) const { return bytes[index] != 0; }
  /// Returns the address of element `index` of an array of f32, or null where it is none or shorter.
  const uint8_t *floatData(uint64_t index) const {
    bool has = valueType == GgufType::Array && element == GgufType::F32 && index < count;
    return has ? bytes.data() + index * sizeof(float) : nullptr;
  }

private:
  GgufType valueType = GgufType::U8, element = GgufType::U8;
  uint64_t count = 0;
  llvm::ArrayRef<uint8_t> bytes; ///< the payload: elements back to back; strings with their lengths
};

/// One tensor of a GGUF file: `dims[0]` is the contiguous dimension.
struct GgufTensor {
  llvm::StringRef name;
  const GgmlTypeInfo *type = nullptr;
  std::vector<int64_t> dims;
  uint64_t offset = 0; ///< from the start of the file
  uint64_t bytes = 0;
};

/// A checked GGUF file.
class GgufFile {
public:
  /// Opens and checks the file at `path`.
  static llvm::Expected<std::shared_ptr<const GgufFile>> open(llvm::StringRef path);
  /// Checks `bytes`, which must outlive the result; `file` is its name in messages.
  static llvm::Expected<std::shared_ptr<const GgufFile>> parse(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef file);

  const std::string &path() const { return filePath; }
  uint32_t version() const { return fileVersion; }
  llvm::ArrayRef<std::pair<llvm::StringRef, GgufValue>> entries() const { return values; }
  llvm::ArrayRef<GgufTensor> tensors() const { return tensorList; }
  llvm::ArrayRef<uint8_t> contents() const { return bytes; }
  /// False for a file that ends where the tensor data would begin (a header someone cut off on purpose).
  bool hasData() const { return dataPresent; }

  /// Returns the value of `key`, or null.
  const GgufValue *find(llvm::StringRef key) const;

  /// Each returns nothing where the key is absent, and an error naming both types where it has another type.
  llvm::Expected<std::optional<int64_t>> getInt(llvm::StringRef key) const;
  llvm::Expected<std::optional<double>> getFloat(llvm::StringRef key) const;
  llvm::Expected<std::optional<bool>> getBool(llvm::StringRef key) const;
  llvm::Expected<std::optional<llvm::StringRef>> getString(llvm::StringRef key) const;
  llvm::Expected<std::optional<std::vector<llvm::StringRef>>> getStrings(llvm::StringRef key) const;
  /// A key that holds an array of integers or floats; null where absent.
  llvm::Expected<const GgufValue *> getNumbers(llvm::StringRef key) const;

  /// As above, but an absent key is an error.
  llvm::Expected<int64_t> requireInt(llvm::StringRef key) const;
  llvm::Expected<double> requireFloat(llvm::StringRef key) const;
  llvm::Expected<llvm::StringRef> requireString(llvm::StringRef key) const;
  llvm::Expected<std::vector<llvm::StringRef>> requireStrings(llvm::StringRef key) const;

private:
  friend class GgufParser;
  GgufFile() = default;
  std::shared_ptr<const MappedFile> mapping; ///< null where the bytes are the caller's
  llvm::ArrayRef<uint8_t> bytes;
  std::string filePath;
  uint32_t fileVersion = 0;
  bool dataPresent = true;
  std::vector<std::pair<llvm::StringRef, GgufValue>> values;
  llvm::StringMap<size_t> valueIndex;
  std::vector<GgufTensor> tensorList;
};

/// Opens `path` as a checkpoint; given the first file of a split set, opens them all. `Checkpoint::gguf()` of
/// the result is the (first) file, for its metadata.
llvm::Expected<std::unique_ptr<Checkpoint>> openGguf(llvm::StringRef path);

} // namespace mcc
