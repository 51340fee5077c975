// The header of a safetensors file comes first and holds the sizes, which are known last: a fixed space is kept for
// it and filled up with blanks, which the format allows.
#include "runtime-lib/src/LogitsFile.h"

#include "runtime-lib/src/Files.h"
#include "runtime-lib/src/Json.h"
#include "runtime-lib/src/Text.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mcc::runtime {

// Room for the length field and the JSON text; three tensors need about 300 bytes with the largest numbers.
static constexpr size_t headerSpace = 512;

Result<std::unique_ptr<LogitsFile>> LogitsFile::create(const std::string &path, int64_t vocabulary) {
  struct stat facts;
  if (stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode))
    return Failure{path + ": error: exists and is not a regular file"};
  const std::string temporary = concat(path, ".", getpid(), ".tmp");
  const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return systemFailure(temporary, "create");
  std::unique_ptr<LogitsFile> file(new LogitsFile(path, temporary, vocabulary, fdopen(descriptor, "wb")));
  const std::string blank(headerSpace, ' ');
  file->put(blank.data(), blank.size());
  return file;
}

LogitsFile::~LogitsFile() {
  if (stream != nullptr)
    std::fclose(stream);
  if (!temporary.empty())
    unlink(temporary.c_str());
}

bool LogitsFile::put(const void *data, size_t bytes) {
  if (error == 0 && (stream == nullptr || std::fwrite(data, 1, bytes, stream) != bytes))
    error = errno != 0 ? errno : EIO;
  return error == 0;
}

bool LogitsFile::append(std::span<const float> row) {
  ++rows;
  return put(row.data(), row.size_bytes());
}

Status LogitsFile::finish(std::span<const int32_t> tokens, std::span<const int32_t> prompt) {
  put(tokens.data(), tokens.size_bytes());
  put(prompt.data(), prompt.size_bytes());
  nlohmann::ordered_json header;
  uint64_t offset = 0;
  const auto describe = [&](const char *name, const char *type, std::vector<int64_t> shape, uint64_t bytes) {
    header[name]["dtype"] = type;
    header[name]["shape"] = std::move(shape);
    header[name]["data_offsets"] = {offset, offset + bytes};
    offset += bytes;
  };
  describe("logits", "F32", {rows, vocabulary}, uint64_t(rows) * uint64_t(vocabulary) * sizeof(float));
  describe("tokens", "I32", {int64_t(tokens.size())}, tokens.size_bytes());
  describe("prompt", "I32", {int64_t(prompt.size())}, prompt.size_bytes());
  std::string text = dumpJson(header);
  text.resize(headerSpace - sizeof(uint64_t), ' ');
  const uint64_t length = text.size();
  if (error == 0 && std::fseek(stream, 0, SEEK_SET) != 0)
    error = errno;
  put(&length, sizeof length);
  put(text.data(), text.size());
  if (stream != nullptr && std::fclose(stream) != 0 && error == 0)
    error = errno;
  stream = nullptr;
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0)
    error = errno;
  if (error != 0)
    return Failure{concat(path, ": error: cannot write: ", std::strerror(error))};
  temporary.clear();
  return {};
}

} // namespace mcc::runtime
