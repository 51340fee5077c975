// Parses GGUF files and makes checkpoints of them.
//
// Order of checks: header, every metadata value (skipped over, kept as a view), every tensor's description, then the
// layout of the data section: tensors follow each other, each padded to general.alignment, and all lie in the file.
// Counts and lengths are compared with what is left of the file before anything is allocated for them, so memory
// stays proportional to the file's header.
#include "compiler/Import/Gguf.h"

#include "compiler/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

namespace mcc {

using llvm::support::endian::read;

const GgmlTypeInfo *ggmlTypeInfo(uint32_t id) {
  static const GgmlTypeInfo types[] = {
#define GGML_TYPE(id, name, elems, bytes) {id, name, elems, bytes},
#include "compiler/Import/GgmlTypes.def"
  };
  const auto *found = llvm::find_if(types, [&](const GgmlTypeInfo &type) { return type.id == id; });
  return found == std::end(types) ? nullptr : found;
}

/// Reads the file front to back.
class GgufParser {
public:
  GgufParser(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef fileName) : result(new GgufFile()) {
    result->bytes = bytes;
    result->filePath = fileName.str();
  }
  llvm::Error parse();
  std::shared_ptr<GgufFile> result;

private:
  uint64_t left() const { return result->bytes.size() - position; }
  template <typename... Args>
  llvm::Error fail(const char *format, Args &&...args) const {
    return diagnose(result->filePath, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  llvm::Error failTensor(const GgufTensor &tensor, const char *format, Args &&...args) const {
    return diagnose(result->filePath + ": tensor " + quoted(tensor.name), format, std::forward<Args>(args)...);
  }
  template <typename T>
  llvm::Error number(T &out, const llvm::Twine &what);
  llvm::Error string(llvm::StringRef &out, const llvm::Twine &what);
  llvm::Error parseHeader();
  llvm::Error parseEntry(uint64_t index);
  llvm::Error parseValue(llvm::StringRef key, GgufType type, GgufValue &out);
  llvm::Error parseArray(llvm::StringRef key, GgufValue &out);
  llvm::Error skipStrings(llvm::StringRef key, uint64_t count);
  llvm::Error parseAlignment();
  llvm::Error parseTensor(uint64_t index);
  llvm::Error parseDims(GgufTensor &tensor);
  llvm::Error parseSize(GgufTensor &tensor, uint32_t typeId);
  llvm::Error placeTensors();

  uint64_t position = 0;
  uint64_t tensorCount = 0, entryCount = 0;
  uint64_t alignment = 32; // the format's default
};

/// Bytes of one element of `type`, or 0 where elements vary in size.
static uint64_t elementBytes(GgufType type) {
  switch (type) {
  case GgufType::U8:
  case GgufType::I8:
  case GgufType::Bool:
    return 1;
  case GgufType::U16:
  case GgufType::I16:
    return 2;
  case GgufType::U32:
  case GgufType::I32:
  case GgufType::F32:
    return 4;
  case GgufType::U64:
  case GgufType::I64:
  case GgufType::F64:
    return 8;
  case GgufType::String:
  case GgufType::Array:
    return 0;
  }
  llvm_unreachable("the parser keeps to the enumerators");
}

template <typename T>
llvm::Error GgufParser::number(T &out, const llvm::Twine &what) {
  if (left() < sizeof(T))
    return fail("ends at byte {0} inside {1}; the file is truncated", result->bytes.size(), what.str());
  out = read<T>(result->bytes.data() + position, llvm::endianness::little);
  position += sizeof(T);
  return llvm::Error::success();
}

llvm::Error GgufParser::string(llvm::StringRef &out, const llvm::Twine &what) {
  uint64_t length;
  if (llvm::Error error = number(length, what))
    return error;
  if (length > left())
    return fail("{0} is stated to have {1} bytes; {2} are left in the file", what.str(), length, left());
  out = llvm::StringRef(reinterpret_cast<const char *>(result->bytes.data()) + position, length);
  position += length;
  return llvm::Error::success();
}

llvm::Error GgufParser::parseHeader() {
  llvm::StringRef magic(reinterpret_cast<const char *>(result->bytes.data()), std::min<size_t>(4, left()));
  if (magic != "GGUF")
    return fail("begins with {0}; a GGUF file begins with 'GGUF'", quoted(magic));
  position = 4;
  uint32_t &version = result->fileVersion;
  if (llvm::Error error = number(version, "the version"))
    return error;
  if (version == 1)
    return fail("is GGUF version 1; mcc reads versions 2 and 3; convert it again with current llama.cpp tools");
  if (version != 0 && (version & 0xffff) == 0)
    return fail("is a big-endian GGUF file (version {0}); mcc reads little-endian ones",
                llvm::byteswap<uint32_t>(version));
  if (version != 2 && version != 3)
    return fail("is GGUF version {0}; mcc reads versions 2 and 3", version);
  if (llvm::Error error = number(tensorCount, "the number of tensors"))
    return error;
  if (llvm::Error error = number(entryCount, "the number of metadata entries"))
    return error;
  // The smallest entry is a length, a type and one byte; the smallest tensor a length, n_dims, type and offset.
  constexpr uint64_t kSmallestEntry = 8 + 4 + 1, kSmallestTensor = 8 + 4 + 4 + 8;
  if (entryCount > left() / kSmallestEntry)
    return fail("states {0} metadata entries; the {1} bytes left hold no more than {2}", entryCount, left(),
                left() / kSmallestEntry);
  if (tensorCount > left() / kSmallestTensor)
    return fail("states {0} tensors; the {1} bytes left hold no more than {2}", tensorCount, left(),
                left() / kSmallestTensor);
  return llvm::Error::success();
}

llvm::Error GgufParser::parseEntry(uint64_t index) {
  llvm::StringRef key;
  if (llvm::Error error = string(key, "the key of metadata entry " + llvm::Twine(index)))
    return error;
  if (key.empty())
    return fail("metadata entry {0} has an empty key", index);
  if (!result->valueIndex.try_emplace(key, result->values.size()).second)
    return fail("metadata key {0} occurs twice", quoted(key));
  uint32_t type;
  if (llvm::Error error = number(type, "the type of key " + quoted(key)))
    return error;
  if (type > static_cast<uint32_t>(GgufType::F64))
    return fail("key {0} has value type {1}; types are 0 to 12", quoted(key), type);
  GgufValue value;
  if (llvm::Error error = parseValue(key, static_cast<GgufType>(type), value))
    return error;
  result->values.emplace_back(key, value);
  return llvm::Error::success();
}

llvm::Error GgufParser::parseValue(llvm::StringRef key, GgufType type, GgufValue &out) {
  if (type == GgufType::Array)
    return parseArray(key, out);
  uint64_t start = position;
  if (type == GgufType::String) {
    if (llvm::Error error = skipStrings(key, 1))
      return error;
  } else {
    uint64_t size = elementBytes(type);
    if (left() < size)
      return fail("ends at byte {0} inside the value of key {1}; the file is truncated", result->bytes.size(),
                  quoted(key));
    position += size;
  }
  out = GgufValue(type, type, 1, result->bytes.slice(start, position - start));
  return llvm::Error::success();
}

llvm::Error GgufParser::skipStrings(llvm::StringRef key, uint64_t count) {
  std::string name = quoted(key); // once: a vocabulary has hundreds of thousands of strings
  for (uint64_t i = 0; i < count; ++i) {
    llvm::StringRef ignored;
    if (llvm::Error error = string(ignored, "string " + llvm::Twine(i) + " of key " + name))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error GgufParser::parseArray(llvm::StringRef key, GgufValue &out) {
  uint32_t type;
  uint64_t count;
  if (llvm::Error error = number(type, "the element type of key " + quoted(key)))
    return error;
  if (llvm::Error error = number(count, "the length of key " + quoted(key)))
    return error;
  if (type > static_cast<uint32_t>(GgufType::F64))
    return fail("key {0} is an array of type {1}; types are 0 to 12", quoted(key), type);
  GgufType element = static_cast<GgufType>(type);
  if (element == GgufType::Array)
    return fail("key {0} is an array of arrays; mcc reads arrays of numbers, bools and strings", quoted(key));
  // A string takes at least its length.
  uint64_t size = element == GgufType::String ? 8 : elementBytes(element);
  if (count > left() / size)
    return fail("key {0} is an array of {1} {2}; the {3} bytes left hold no more than {4}", quoted(key), count,
                ggufTypeName(element), left(), left() / size);
  uint64_t start = position;
  if (element == GgufType::String) {
    if (llvm::Error error = skipStrings(key, count))
      return error;
  } else {
    position += count * size;
  }
  out = GgufValue(GgufType::Array, element, count, result->bytes.slice(start, position - start));
  return llvm::Error::success();
}

llvm::Error GgufParser::parseAlignment() {
  const GgufValue *value = result->find("general.alignment");
  if (!value)
    return llvm::Error::success();
  if (value->type() != GgufType::U32)
    return fail("key 'general.alignment' is {0}; it must be u32", value->typeName());
  alignment = static_cast<uint64_t>(*value->asInt());
  if (!llvm::isPowerOf2_64(alignment))
    return fail("key 'general.alignment' is {0}; it must be a power of two", alignment);
  return llvm::Error::success();
}

llvm::Error GgufParser::parseDims(GgufTensor &tensor) {
  constexpr uint32_t kMostDims = 4;
  uint32_t count;
  if (llvm::Error error = number(count, "the description of tensor " + quoted(tensor.name)))
    return error;
  if (count > kMostDims)
    return failTensor(tensor, "has {0} dimensions; GGUF allows {1}", count, kMostDims);
  int64_t elems = 1;
  for (uint32_t i = 0; i < count; ++i) {
    int64_t dim;
    if (llvm::Error error = number(dim, "the description of tensor " + quoted(tensor.name)))
      return error;
    if (dim < 0)
      return failTensor(tensor, "dimension {0} is {1}; it must be 0 or more", i, dim);
    if (__builtin_mul_overflow(elems, dim, &elems))
      return failTensor(tensor, "its first {0} dimensions multiply to more than 2^63-1 elements", i + 1);
    tensor.dims.push_back(dim);
  }
  return llvm::Error::success();
}

llvm::Error GgufParser::parseSize(GgufTensor &tensor, uint32_t typeId) {
  tensor.type = ggmlTypeInfo(typeId);
  if (!tensor.type)
    return failTensor(tensor, "has ggml type {0}, which is none", typeId);
  uint64_t rowElems = tensor.dims.empty() ? 1 : static_cast<uint64_t>(tensor.dims[0]);
  if (rowElems % tensor.type->blockElems != 0)
    return failTensor(tensor, "its rows have {0} elements; {1} comes in blocks of {2}", rowElems, tensor.type->name,
                      tensor.type->blockElems);
  uint64_t elems = 1;
  for (int64_t dim : tensor.dims)
    elems *= static_cast<uint64_t>(dim); // parseDims() excluded overflow
  if (__builtin_mul_overflow(elems / tensor.type->blockElems, tensor.type->blockBytes, &tensor.bytes))
    return failTensor(tensor, "{0} elements of {1} take more than 2^64-1 bytes", elems, tensor.type->name);
  return llvm::Error::success();
}

llvm::Error GgufParser::parseTensor(uint64_t index) {
  constexpr size_t kLongestName = 63;
  GgufTensor tensor;
  if (llvm::Error error = string(tensor.name, "the name of tensor " + llvm::Twine(index)))
    return error;
  if (tensor.name.empty())
    return fail("tensor {0} has an empty name", index);
  if (tensor.name.size() > kLongestName)
    return failTensor(tensor, "its name has {0} bytes; GGUF allows {1}", tensor.name.size(), kLongestName);
  uint32_t typeId;
  if (llvm::Error error = parseDims(tensor))
    return error;
  if (llvm::Error error = number(typeId, "the description of tensor " + quoted(tensor.name)))
    return error;
  if (llvm::Error error = number(tensor.offset, "the description of tensor " + quoted(tensor.name)))
    return error;
  if (llvm::Error error = parseSize(tensor, typeId))
    return error;
  result->tensorList.push_back(std::move(tensor));
  return llvm::Error::success();
}

llvm::Error GgufParser::placeTensors() {
  uint64_t dataStart = llvm::alignTo(position, alignment);
  uint64_t dataBytes = result->bytes.size() > dataStart ? result->bytes.size() - dataStart : 0;
  result->dataPresent = result->tensorList.empty() || dataBytes > 0;
  uint64_t expected = 0, lastEnd = 0;
  for (GgufTensor &tensor : result->tensorList) {
    if (tensor.offset != expected)
      return failTensor(tensor, "is at offset {0} of the data; the tensors before it end at {1}", tensor.offset,
                        expected);
    uint64_t end, limit = std::numeric_limits<uint64_t>::max() - alignment;
    if (__builtin_add_overflow(tensor.offset, tensor.bytes, &end) || end > limit)
      return failTensor(tensor, "its {0} bytes at offset {1} pass 2^64", tensor.bytes, tensor.offset);
    if (result->dataPresent && end > dataBytes)
      return failTensor(tensor, "its {0} bytes at offset {1} reach past the file's {2} bytes of data", tensor.bytes,
                        tensor.offset, dataBytes);
    expected = llvm::alignTo(end, alignment);
    lastEnd = end;
    tensor.offset += dataStart;
  }
  // Writers pad the last tensor too. A file without that padding lacks nothing; one cut inside it was truncated.
  if (result->dataPresent && dataBytes < expected && dataBytes != lastEnd)
    return fail("has {0} bytes of data; its tensors take {1} with padding; the file is truncated", dataBytes, expected);
  return llvm::Error::success();
}

llvm::Error GgufParser::parse() {
  if (llvm::Error error = parseHeader())
    return error;
  for (uint64_t i = 0; i < entryCount; ++i)
    if (llvm::Error error = parseEntry(i))
      return error;
  if (llvm::Error error = parseAlignment())
    return error;
  llvm::StringSet<> names;
  for (uint64_t i = 0; i < tensorCount; ++i) {
    if (llvm::Error error = parseTensor(i))
      return error;
    if (!names.insert(result->tensorList.back().name).second)
      return failTensor(result->tensorList.back(), "occurs twice");
  }
  return placeTensors();
}

llvm::Expected<std::shared_ptr<const GgufFile>> GgufFile::parse(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef file) {
  GgufParser parser(bytes, file);
  if (llvm::Error error = parser.parse())
    return error;
  return parser.result;
}

llvm::Expected<std::shared_ptr<const GgufFile>> GgufFile::open(llvm::StringRef path) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  GgufParser parser((*file)->contents(), path);
  parser.result->mapping = *file;
  if (llvm::Error error = parser.parse())
    return error;
  return parser.result;
}

} // namespace mcc
