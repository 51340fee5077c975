// Reads safetensors files and their shard indices.
//
// A file is an 8-byte little-endian header length, a JSON header, and the data. The header maps each name to dtype,
// shape and [begin, end) in the data. Tensors must tile the data exactly: sorted by begin, each starts where the
// one before ends, the first at 0, the last ends with the file. That excludes overlaps, holes and truncation at
// once. Every size is computed with overflow checks, and nothing is allocated that the header's own length does
// not bound.
#include "compiler/Import/Safetensors.h"

#include "compiler/Import/JsonCursor.h"
#include "compiler/Import/MappedCheckpoint.h"
#include "compiler/Support/Error.h"
#include "compiler/Support/MappedFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/Path.h"

#include <limits>
#include <map>
#include <optional>
#include <tuple>

namespace mcc {

namespace {

/// The format's limit on the header, 100 MB.
constexpr uint64_t kLongestHeader = 100'000'000;
constexpr uint64_t kLengthBytes = 8;

struct Dtype {
  llvm::StringLiteral name;
  unsigned bits;
  std::optional<Format> format;
};

const Dtype kDtypes[] = {
    {"F32", 32, Format::F32},
    {"F16", 16, Format::F16},
    {"BF16", 16, Format::BF16},
    {"F64", 64, {}},
    {"I64", 64, {}},
    {"I32", 32, {}},
    {"I16", 16, {}},
    {"I8", 8, {}},
    {"U64", 64, {}},
    {"U32", 32, {}},
    {"U16", 16, {}},
    {"U8", 8, {}},
    {"BOOL", 8, {}},
    {"C64", 64, {}},
    {"F8_E4M3", 8, {}},
    {"F8_E5M2", 8, {}},
    {"F8_E8M0", 8, {}},
    {"F8_E4M3FNUZ", 8, {}},
    {"F8_E5M2FNUZ", 8, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"F4", 4, {}},
};

/// One tensor as the header states it.
struct Entry {
  TensorInfo info;
  const Dtype *dtype = nullptr;
  uint64_t begin = 0, end = 0;
};

/// Returns the bytes of `entry` by its shape and dtype, or nothing where that overflows or is no whole byte.
std::optional<uint64_t> shapeBytes(const Entry &entry) {
  uint64_t elems = 1;
  for (int64_t dim : entry.info.shape)
    if (__builtin_mul_overflow(elems, static_cast<uint64_t>(dim), &elems))
      return std::nullopt;
  uint64_t bits;
  if (elems > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ||
      __builtin_mul_overflow(elems, uint64_t{entry.dtype->bits}, &bits) || bits % 8 != 0)
    return std::nullopt;
  return bits / 8;
}

/// Parses the header of one file and checks the layout it describes.
class HeaderParser {
public:
  HeaderParser(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef file, uint64_t headerBytes)
      : file(file.str()), data(bytes.drop_front(kLengthBytes + headerBytes)),
        json(llvm::StringRef(reinterpret_cast<const char *>(bytes.data()) + kLengthBytes, headerBytes), this->file,
             JsonCursor::Place::HeaderByte, kLengthBytes) {}

  llvm::Expected<std::vector<TensorInfo>> parse();

private:
  llvm::Error parseMetadata();
  llvm::Error parseEntry(llvm::StringRef name);
  llvm::Error parseDtype(Entry &entry);
  llvm::Error parseShape(Entry &entry);
  llvm::Error parseOffsets(Entry &entry);
  llvm::Error checkEntry(const Entry &entry);
  llvm::Error checkTiling();
  std::string whereTensor(const Entry &entry) const { return file + ": tensor " + quoted(entry.info.name); }

  std::string file;
  llvm::ArrayRef<uint8_t> data;
  JsonCursor json;
  std::vector<Entry> entries;
};

llvm::Error HeaderParser::parseMetadata() {
  return json.object([&](llvm::StringRef) {
    std::string value;
    return json.string(value);
  });
}

llvm::Error HeaderParser::parseDtype(Entry &entry) {
  std::string place = json.where(), text;
  if (llvm::Error error = json.string(text))
    return error;
  entry.dtype = llvm::find_if(kDtypes, [&](const Dtype &dtype) { return dtype.name == text; });
  if (entry.dtype == std::end(kDtypes))
    return diagnose(place, "tensor {0} has dtype {1}, which safetensors does not have", quoted(entry.info.name),
                    quoted(text));
  if (entry.dtype->format)
    entry.info.format = *entry.dtype->format;
  else
    entry.info.otherType = entry.dtype->name.str();
  return llvm::Error::success();
}

llvm::Error HeaderParser::parseShape(Entry &entry) {
  return json.array([&](uint64_t) -> llvm::Error {
    std::string place = json.where();
    uint64_t dim;
    if (llvm::Error error = json.unsignedInteger(dim))
      return error;
    if (dim > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return diagnose(place, "tensor {0} has a dimension of {1}; the largest is 2^63-1", quoted(entry.info.name), dim);
    entry.info.shape.push_back(static_cast<int64_t>(dim));
    return llvm::Error::success();
  });
}

llvm::Error HeaderParser::parseOffsets(Entry &entry) {
  std::string place = json.where();
  uint64_t count = 0;
  llvm::Error error = json.array([&](uint64_t index) {
    count = index + 1;
    uint64_t ignored;
    return json.unsignedInteger(index == 0 ? entry.begin : index == 1 ? entry.end : ignored);
  });
  if (error || count == 2)
    return error;
  return diagnose(place, "tensor {0} has {1} data_offsets; there must be 2", quoted(entry.info.name), count);
}

llvm::Error HeaderParser::parseEntry(llvm::StringRef name) {
  Entry entry;
  entry.info.name = name.str();
  entry.info.file = file;
  std::string place = json.where();
  bool hasShape = false, hasOffsets = false;
  llvm::Error error = json.object([&](llvm::StringRef key) {
    hasShape |= key == "shape";
    hasOffsets |= key == "data_offsets";
    if (key == "dtype")
      return parseDtype(entry);
    if (key == "shape")
      return parseShape(entry);
    return key == "data_offsets" ? parseOffsets(entry) : json.skipValue();
  });
  if (error)
    return error;
  if (!entry.dtype || !hasShape || !hasOffsets)
    return diagnose(place, "tensor {0} has no '{1}'", quoted(name),
                    !entry.dtype ? "dtype"
                    : !hasShape  ? "shape"
                                 : "data_offsets");
  if (llvm::Error error = checkEntry(entry))
    return error;
  entries.push_back(std::move(entry));
  return llvm::Error::success();
}

llvm::Error HeaderParser::checkEntry(const Entry &entry) {
  if (entry.begin > entry.end)
    return diagnose(whereTensor(entry), "data_offsets [{0}, {1}] end before they begin", entry.begin, entry.end);
  if (entry.end > data.size())
    return diagnose(whereTensor(entry), "data_offsets [{0}, {1}] reach past the file's {2} bytes of data", entry.begin,
                    entry.end, data.size());
  std::optional<uint64_t> bytes = shapeBytes(entry);
  if (!bytes)
    return diagnose(whereTensor(entry), "shape {0} of {1} takes more than 2^63-1 bytes, or no whole number of them",
                    shapeText(entry.info.shape), entry.dtype->name);
  if (*bytes != entry.end - entry.begin)
    return diagnose(whereTensor(entry), "shape {0} of {1} takes {2} bytes; data_offsets [{3}, {4}] hold {5}",
                    shapeText(entry.info.shape), entry.dtype->name, *bytes, entry.begin, entry.end,
                    entry.end - entry.begin);
  return llvm::Error::success();
}

llvm::Error HeaderParser::checkTiling() {
  llvm::sort(entries, [](const Entry &a, const Entry &b) {
    return std::tie(a.begin, a.end, a.info.name) < std::tie(b.begin, b.end, b.info.name);
  });
  uint64_t covered = 0;
  const Entry *previous = nullptr;
  for (const Entry &entry : entries) {
    if (entry.begin < covered)
      return diagnose(whereTensor(entry), "begins at data byte {0}, inside tensor {1}, which ends at {2}", entry.begin,
                      quoted(previous->info.name), covered);
    if (entry.begin > covered)
      return diagnose(whereTensor(entry), "begins at data byte {0}; bytes {1} to {0} belong to no tensor", entry.begin,
                      covered);
    covered = entry.end;
    previous = &entry;
  }
  if (covered != data.size())
    return diagnose(file, "has {0} bytes of data; its tensors take {1}", data.size(), covered);
  return llvm::Error::success();
}

llvm::Expected<std::vector<TensorInfo>> HeaderParser::parse() {
  if (llvm::Error error = json.checkUtf8())
    return error;
  llvm::Error error =
      json.object([&](llvm::StringRef name) { return name == "__metadata__" ? parseMetadata() : parseEntry(name); });
  if (error)
    return error;
  if (llvm::Error error = json.end())
    return error;
  if (llvm::Error error = checkTiling())
    return error;
  std::vector<TensorInfo> tensors;
  tensors.reserve(entries.size());
  for (Entry &entry : entries) {
    entry.info.data = data.data() + entry.begin;
    entry.info.bytes = entry.end - entry.begin;
    tensors.push_back(std::move(entry.info));
  }
  return tensors;
}

} // namespace

llvm::Expected<std::vector<TensorInfo>> parseSafetensors(llvm::ArrayRef<uint8_t> bytes, llvm::StringRef file) {
  if (bytes.size() < kLengthBytes)
    return diagnose(file.str(), "has {0} bytes; a safetensors file begins with an 8-byte header length", bytes.size());
  uint64_t headerBytes = llvm::support::endian::read64le(bytes.data());
  if (headerBytes > kLongestHeader)
    return diagnose(file.str(), "states a header of {0} bytes; safetensors allows {1}", headerBytes, kLongestHeader);
  if (headerBytes > bytes.size() - kLengthBytes)
    return diagnose(file.str(), "states a header of {0} bytes; {1} follow; the file is truncated", headerBytes,
                    bytes.size() - kLengthBytes);
  return HeaderParser(bytes, file, headerBytes).parse();
}

llvm::Expected<std::unique_ptr<Checkpoint>> openSafetensors(llvm::StringRef path) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  auto tensors = parseSafetensors((*file)->contents(), path);
  if (!tensors)
    return tensors.takeError();
  std::vector<std::shared_ptr<const void>> owners = {*file};
  return std::make_unique<MappedCheckpoint>(path.str(), std::move(*tensors), std::move(owners));
}

namespace {

/// Where the index puts each tensor.
struct ShardMap {
  llvm::StringMap<std::string> shardOf;            ///< tensor -> shard file name
  std::map<std::string, std::string> placeOfShard; ///< shard file name -> first place that names it
};

llvm::Error parseWeightMap(JsonCursor &json, ShardMap &map) {
  return json.object([&](llvm::StringRef tensor) -> llvm::Error {
    std::string place = json.where(), shard;
    if (llvm::Error error = json.string(shard))
      return error;
    bool leaves =
        llvm::is_contained(llvm::make_range(llvm::sys::path::begin(shard), llvm::sys::path::end(shard)), "..");
    if (shard.empty() || leaves || llvm::sys::path::is_absolute(shard) || shard.find('\0') != std::string::npos)
      return diagnose(place, "shard {0} of tensor {1} is not a file name beside the index", quoted(shard),
                      quoted(tensor));
    map.placeOfShard.emplace(shard, place);
    map.shardOf[tensor] = std::move(shard);
    return llvm::Error::success();
  });
}

llvm::Expected<ShardMap> parseIndex(llvm::StringRef text, llvm::StringRef path) {
  JsonCursor json(text, path, JsonCursor::Place::LineColumn);
  if (llvm::Error error = json.checkUtf8())
    return error;
  ShardMap map;
  bool hasMap = false;
  llvm::Error error = json.object([&](llvm::StringRef key) {
    if (key != "weight_map")
      return json.skipValue();
    hasMap = true;
    return parseWeightMap(json, map);
  });
  if (error)
    return error;
  if (llvm::Error error = json.end())
    return error;
  if (!hasMap || map.shardOf.empty())
    return diagnose(path.str(), hasMap ? "its 'weight_map' is empty" : "has no 'weight_map'; it is no shard index");
  return map;
}

/// Checks the tensors of one shard against the index and appends them to `all`.
llvm::Error addShard(const ShardMap &map, llvm::StringRef shard, std::vector<TensorInfo> tensors,
                     llvm::StringMap<std::string> &fileOf, std::vector<TensorInfo> &all) {
  for (TensorInfo &tensor : tensors) {
    auto [known, isNew] = fileOf.try_emplace(tensor.name, tensor.file);
    if (!isNew)
      return diagnose(tensor.file + ": tensor " + quoted(tensor.name), "is in this shard and in {0}", known->second);
    auto indexed = map.shardOf.find(tensor.name);
    // A tensor that no index names is a tensor all the same; checkTensors() judges it.
    if (indexed != map.shardOf.end() && indexed->second != shard)
      return diagnose(tensor.file + ": tensor " + quoted(tensor.name), "is in this shard; the index puts it in {0}",
                      quoted(indexed->second));
    all.push_back(std::move(tensor));
  }
  return llvm::Error::success();
}

/// Finds the first tensor, by name, that the index puts in a shard which lacks it.
llvm::Error checkAllPresent(const ShardMap &map, const llvm::StringMap<std::string> &fileOf, llvm::StringRef path) {
  llvm::StringRef missing;
  bool complete = true;
  for (const auto &entry : map.shardOf) {
    if (fileOf.contains(entry.getKey()) || (!complete && missing < entry.getKey()))
      continue;
    missing = entry.getKey();
    complete = false;
  }
  if (complete)
    return llvm::Error::success();
  return diagnose(path.str(), "puts tensor {0} in {1}, which lacks it", quoted(missing),
                  quoted(map.shardOf.find(missing)->second));
}

} // namespace

llvm::Expected<std::unique_ptr<Checkpoint>> openSafetensorsIndex(llvm::StringRef path) {
  auto index = MappedFile::open(path);
  if (!index)
    return index.takeError();
  llvm::ArrayRef<uint8_t> bytes = (*index)->contents();
  auto map = parseIndex(llvm::StringRef(reinterpret_cast<const char *>(bytes.data()), bytes.size()), path);
  if (!map)
    return map.takeError();
  std::vector<TensorInfo> all;
  std::vector<std::shared_ptr<const void>> owners;
  llvm::StringMap<std::string> fileOf;
  for (const auto &[shard, place] : map->placeOfShard) {
    llvm::SmallString<256> shardPath = llvm::sys::path::parent_path(path);
    llvm::sys::path::append(shardPath, shard);
    auto file = MappedFile::open(shardPath);
    if (!file)
      return diagnose(place, "shard {0} cannot be used; {1}", quoted(shard), llvm::toString(file.takeError()));
    auto tensors = parseSafetensors((*file)->contents(), shardPath);
    if (!tensors)
      return tensors.takeError();
    if (llvm::Error error = addShard(*map, shard, std::move(*tensors), fileOf, all))
      return error;
    owners.push_back(*file);
  }
  if (llvm::Error error = checkAllPresent(*map, fileOf, path))
    return error;
  return std::make_unique<MappedCheckpoint>(path.str(), std::move(all), std::move(owners));
}

} // namespace mcc
