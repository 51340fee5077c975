// Typed access to GGUF metadata: a value is decoded from its bytes when it is asked for.
#include "compiler/Import/Gguf.h"

#include "compiler/Support/Error.h"

#include "llvm/Support/Endian.h"

#include <cassert>
#include <limits>

namespace mcc {

using llvm::support::endian::read;

llvm::StringRef ggufTypeName(GgufType type) {
  static constexpr llvm::StringLiteral names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                  "bool", "string", "array", "u64", "i64", "f64"};
  return names[static_cast<uint32_t>(type)];
}

std::string GgufValue::typeName() const {
  if (valueType != GgufType::Array)
    return ggufTypeName(valueType).str();
  return llvm::formatv("array of {0} {1}", count, ggufTypeName(element)).str();
}

template <typename T>
static T readAt(llvm::ArrayRef<uint8_t> bytes, uint64_t index) {
  return read<T>(bytes.data() + index * sizeof(T), llvm::endianness::little);
}

std::optional<int64_t> GgufValue::intAt(uint64_t index) const {
  assert(index < count && "index outside the array");
  switch (element) {
  case GgufType::U8:
    return readAt<uint8_t>(bytes, index);
  case GgufType::I8:
    return readAt<int8_t>(bytes, index);
  case GgufType::U16:
    return readAt<uint16_t>(bytes, index);
  case GgufType::I16:
    return readAt<int16_t>(bytes, index);
  case GgufType::U32:
    return readAt<uint32_t>(bytes, index);
  case GgufType::I32:
    return readAt<int32_t>(bytes, index);
  case GgufType::I64:
    return readAt<int64_t>(bytes, index);
  case GgufType::U64: {
    uint64_t value = readAt<uint64_t>(bytes, index);
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return std::nullopt;
    return static_cast<int64_t>(value);
  }
  default:
    return std::nullopt;
  }
}

std::optional<double> GgufValue::floatAt(uint64_t index) const {
  assert(index < count && "index outside the array");
  if (element == GgufType::F32)
    return readAt<float>(bytes, index);
  if (element == GgufType::F64)
    return readAt<double>(bytes, index);
  if (element == GgufType::U64)
    return static_cast<double>(readAt<uint64_t>(bytes, index));
  std::optional<int64_t> integer = intAt(index);
  if (!integer)
    return std::nullopt;
  return static_cast<double>(*integer);
}

bool GgufValue::isNumberArray() const {
  return valueType == GgufType::Array && element != GgufType::String && element != GgufType::Bool;
}

std::optional<int64_t> GgufValue::asInt() const { return valueType == GgufType::Array ? std::nullopt : intAt(0); }

std::optional<double> GgufValue::asFloat() const { return valueType == GgufType::Array ? std::nullopt : floatAt(0); }

std::optional<bool> GgufValue::asBool() const {
  if (valueType != GgufType::Bool)
    return std::nullopt;
  // The format says 0 or 1; ggml reads any other byte as true, so do we.
  return bytes[0] != 0;
}

/// Splits the string off the front of `bytes`, whose lengths the parser has checked.
static llvm::StringRef takeString(llvm::ArrayRef<uint8_t> &bytes) {
  uint64_t length = readAt<uint64_t>(bytes, 0);
  llvm::StringRef text(reinterpret_cast<const char *>(bytes.data()) + sizeof(uint64_t), length);
  bytes = bytes.drop_front(sizeof(uint64_t) + length);
  return text;
}

std::optional<llvm::StringRef> GgufValue::asString() const {
  if (valueType != GgufType::String)
    return std::nullopt;
  llvm::ArrayRef<uint8_t> rest = bytes;
  return takeString(rest);
}

std::optional<std::vector<llvm::StringRef>> GgufValue::asStrings() const {
  if (valueType != GgufType::Array || element != GgufType::String)
    return std::nullopt;
  std::vector<llvm::StringRef> strings;
  strings.reserve(count);
  llvm::ArrayRef<uint8_t> rest = bytes;
  for (uint64_t i = 0; i < count; ++i)
    strings.push_back(takeString(rest));
  return strings;
}

const GgufValue *GgufFile::find(llvm::StringRef key) const {
  auto found = valueIndex.find(key);
  return found == valueIndex.end() ? nullptr : &values[found->second].second;
}

static llvm::Error wrongType(const GgufFile &file, llvm::StringRef key, const GgufValue &value, const char *wanted) {
  return diagnose(file.path(), "key {0} is {1}; {2} is needed", quoted(key), value.typeName(), wanted);
}

/// Returns key's value as `decode` reads it: nothing where absent, an error where `decode` returns nothing.
template <typename T>
static llvm::Expected<std::optional<T>> getAs(const GgufFile &file, llvm::StringRef key, const char *wanted,
                                              std::optional<T> (GgufValue::*decode)() const) {
  const GgufValue *value = file.find(key);
  if (!value)
    return std::optional<T>();
  std::optional<T> decoded = (value->*decode)();
  if (!decoded)
    return wrongType(file, key, *value, wanted);
  return decoded;
}

llvm::Expected<std::optional<int64_t>> GgufFile::getInt(llvm::StringRef key) const {
  return getAs(*this, key, "an integer below 2^63", &GgufValue::asInt);
}

llvm::Expected<std::optional<double>> GgufFile::getFloat(llvm::StringRef key) const {
  return getAs(*this, key, "a number", &GgufValue::asFloat);
}

llvm::Expected<std::optional<bool>> GgufFile::getBool(llvm::StringRef key) const {
  return getAs(*this, key, "bool", &GgufValue::asBool);
}

llvm::Expected<std::optional<llvm::StringRef>> GgufFile::getString(llvm::StringRef key) const {
  return getAs(*this, key, "string", &GgufValue::asString);
}

llvm::Expected<std::optional<std::vector<llvm::StringRef>>> GgufFile::getStrings(llvm::StringRef key) const {
  return getAs(*this, key, "an array of string", &GgufValue::asStrings);
}

llvm::Expected<const GgufValue *> GgufFile::getNumbers(llvm::StringRef key) const {
  const GgufValue *value = find(key);
  if (value && !value->isNumberArray())
    return wrongType(*this, key, *value, "an array of numbers");
  return value;
}

/// Turns an absent key into an error.
template <typename T>
static llvm::Expected<T> require(const GgufFile &file, llvm::StringRef key, llvm::Expected<std::optional<T>> value) {
  if (!value)
    return value.takeError();
  if (!*value)
    return diagnose(file.path(), "has no key {0}, which the model needs", quoted(key));
  return std::move(**value);
}

llvm::Expected<int64_t> GgufFile::requireInt(llvm::StringRef key) const { return require(*this, key, getInt(key)); }

llvm::Expected<double> GgufFile::requireFloat(llvm::StringRef key) const { return require(*this, key, getFloat(key)); }

llvm::Expected<llvm::StringRef> GgufFile::requireString(llvm::StringRef key) const {
  return require(*this, key, getString(key));
}

llvm::Expected<std::vector<llvm::StringRef>> GgufFile::requireStrings(llvm::StringRef key) const {
  return require(*this, key, getStrings(key));
}

} // namespace mcc
