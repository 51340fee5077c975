// Opening the weights: the header is checked before anything in it is used, in the order in which a mistake is
// likeliest to be understood: is it a weights file at all, is it whole, does it belong to this executable.
//
// Invariant: after open() succeeds every segment lies inside the mapping, on a page boundary, and the id equals
// the executable's; contents are only vouched for by verify().
#include "runtime-lib/src/WeightsFile.h"

#include "mcc/BlobDigest.h"
#include "runtime-lib/src/Files.h"
#include "runtime-lib/src/Text.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mcc::runtime {

static_assert(sizeof(MccBlobHeader) <= MCC_BLOB_ALIGNMENT, "the header fits its page");

Result<std::string> defaultWeightsPath() {
  std::string path(256, '\0');
  while (true) {
    const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
    if (length < 0)
      return Failure{concat("/proc/self/exe: error: cannot resolve: ", std::strerror(errno),
                            "; name the weights with --weights FILE")};
    if (static_cast<size_t>(length) < path.size()) {
      path.resize(static_cast<size_t>(length));
      return path + ".weights";
    }
    path.resize(path.size() * 2);
  }
}

std::string_view segmentName(const MccBlobSegment &segment) {
  return std::string_view(segment.name, strnlen(segment.name, sizeof segment.name));
}

/// Opens `path` without blocking (a pipe without a writer would) and returns its descriptor and size.
static Result<std::pair<int, size_t>> openRegular(const std::string &path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const char *hint = errno == ENOENT ? "; the weights are looked for beside the executable, under its own name and "
                                         "'.weights', or where --weights FILE says"
                                       : "";
    return Failure{concat(path, ": error: cannot open: ", std::strerror(errno), hint)};
  }
  struct stat facts;
  if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    close(descriptor);
    return Failure{path + ": error: not a regular file"};
  }
  return std::pair(descriptor, static_cast<size_t>(facts.st_size));
}

Result<WeightsFile> WeightsFile::open(const std::string &path, const MccModel &model) {
  Result<std::pair<int, size_t>> opened = openRegular(path);
  if (!opened.ok())
    return opened.failure();
  const auto [descriptor, bytes] = opened.value();
  if (bytes < sizeof(MccBlobHeader)) {
    close(descriptor);
    return Failure{concat(path, ": error: file has ", bytes, " bytes; the header of a weights file alone has ",
                          sizeof(MccBlobHeader), "; this program's weights have ", model.blobBytes)};
  }
  void *base = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int error = errno;
  close(descriptor);
  if (base == MAP_FAILED)
    return Failure{concat(path, ": error: cannot map ", bytes, " bytes: ", std::strerror(error))};
  WeightsFile file(path, static_cast<const uint8_t *>(base), bytes);
  if (Status status = file.checkHeader(model); !status.ok())
    return Failure{status.message()};
  file.advise();
  return file;
}

WeightsFile::WeightsFile(WeightsFile &&other) noexcept
    : filePath(std::move(other.filePath)), base(other.base), bytes(other.bytes) {
  other.base = nullptr;
}

WeightsFile::~WeightsFile() {
  if (base != nullptr)
    munmap(const_cast<uint8_t *>(base), bytes);
}

Status WeightsFile::checkHeader(const MccModel &model) const {
  const MccBlobHeader &header = this->header();
  const auto fail = [this](const std::string &fact) { return Failure{concat(filePath, ": error: ", fact)}; };
  if (std::memcmp(header.magic, MCC_BLOB_MAGIC, sizeof header.magic) != 0)
    return fail(concat("not a weights file: it begins with the bytes ", hex(std::span(base, sizeof header.magic)),
                       "; expected ",
                       hex(std::span(reinterpret_cast<const uint8_t *>(MCC_BLOB_MAGIC), sizeof header.magic))));
  if (const uint64_t sum = headerChecksumOf(header); sum != header.checksum)
    return fail(concat("the header is damaged: its checksum is ", sum, "; it says ", header.checksum));
  if (header.abi != model.abi)
    return fail(concat("weights have ABI ", header.abi, "; this program has ABI ", model.abi));
  if (header.fileBytes != bytes)
    return fail(concat("file has ", bytes, " bytes; its header says ", header.fileBytes,
                       bytes < header.fileBytes ? "; the copy was cut short" : ""));
  if (Status status = checkSegments(); !status.ok())
    return fail(status.message());
  if (std::memcmp(header.id, model.blobId, sizeof header.id) != 0)
    return fail(concat("weights of another program: their id is ", hex(header.id), " (", header.fileBytes,
                       " bytes); this program was compiled with ", hex(model.blobId), " (", model.blobBytes,
                       " bytes)"));
  if (header.fileBytes != model.blobBytes)
    return fail(concat("weights have ", header.fileBytes, " bytes; this program was compiled with ", model.blobBytes));
  return {};
}

Status WeightsFile::checkSegments() const {
  const MccBlobHeader &header = this->header();
  if (header.segmentCount > MCC_BLOB_MAX_SEGMENTS)
    return Failure{concat("header has ", header.segmentCount, " segments; at most ", MCC_BLOB_MAX_SEGMENTS, " fit")};
  for (uint32_t i = 0; i < header.segmentCount; ++i) {
    const MccBlobSegment &segment = header.segments[i];
    if (segment.offset % MCC_BLOB_ALIGNMENT != 0 || segment.offset < MCC_BLOB_ALIGNMENT)
      return Failure{concat("segment '", segmentName(segment), "' begins at ", segment.offset,
                            "; segments begin at multiples of ", MCC_BLOB_ALIGNMENT, " after the header")};
    if (segment.offset > bytes || segment.bytes > bytes - segment.offset)
      return Failure{concat("segment '", segmentName(segment), "' has ", segment.bytes, " bytes at ", segment.offset,
                            "; the file has ", bytes)};
  }
  if (blobIdOf(header) != std::to_array(header.id))
    return Failure{concat("the id is ", hex(header.id), "; the segments' digests give ", hex(blobIdOf(header)))};
  return {};
}

void WeightsFile::advise() const {
  // Advice only: kernels without huge pages for file mappings refuse the first, and nothing is lost.
  madvise(const_cast<uint8_t *>(base), bytes, MADV_HUGEPAGE);
  madvise(const_cast<uint8_t *>(base), bytes, MADV_WILLNEED);
}

std::optional<std::span<const uint8_t>> WeightsFile::segment(std::string_view name) const {
  for (uint32_t i = 0; i < header().segmentCount; ++i) {
    const MccBlobSegment &segment = header().segments[i];
    if (segmentName(segment) == name)
      return std::span(base + segment.offset, segment.bytes);
  }
  return std::nullopt;
}

Status WeightsFile::verify() const {
  for (uint32_t i = 0; i < header().segmentCount; ++i) {
    const MccBlobSegment &segment = header().segments[i];
    const BlobDigest found = digestOf(base + segment.offset, segment.bytes);
    if (std::memcmp(found.data(), segment.digest, found.size()) != 0)
      return Failure{concat(filePath, ": error: segment '", segmentName(segment), "' (", segment.bytes,
                            " bytes) has digest ", hex(found), "; it should be ", hex(segment.digest))};
  }
  return {};
}

} // namespace mcc::runtime
