// Makes a program of the kernels that are to be measured, as models are made (codegen/CPU/Calibration.h), and runs it: so
// the code that is measured is the code that will run. The program prints the profile; it is checked by reading it.
#include "compiler/Driver/CalibrateCommand.h"

#include "codegen/CPU/Calibration.h"
#include "codegen/Object/Link.h"
#include "compiler/Driver/Installation.h"
#include "compiler/Support/Error.h"
#include "compiler/Support/ScratchFolder.h"
#include "runtime-lib/placement/Profile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

namespace mcc {
namespace {

llvm::Error writeFile(const std::string &path, llvm::StringRef bytes) {
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  if (!error) {
    stream << bytes;
    stream.close();
    error = stream.error();
    stream.clear_error();
  }
  return error ? diagnose(path, "cannot write: {0}", error.message()) : llvm::Error::success();
}

llvm::Error makeProgram(llvm::ArrayRef<Format> formats, const ScratchFolder &folder, llvm::StringRef program) {
  llvm::Expected<Installation> installation = Installation::find();
  if (!installation)
    return installation.takeError();
  llvm::Expected<CpuTarget> target = resolveCpuTarget("native");
  if (!target)
    return target.takeError();
  bool gpu = !installation->gpuRuntime.empty();
  auto object = emitCalibrationObject(formats, *target, installation->kernels, gpu);
  if (!object)
    return object.takeError();
  std::string objectFile = folder.file("calibrate.o");
  if (llvm::Error error = writeFile(objectFile, llvm::StringRef(object->data(), object->size())))
    return error;
  llvm::SmallVector<llvm::StringRef> archives;
  if (gpu)
    archives.push_back(installation->gpuRuntime);
  archives.push_back(installation->runtime);
  return linkExecutable(objectFile, archives, program);
}

// Returns the text of a profile that can be read.
llvm::Expected<std::string> measure(llvm::ArrayRef<Format> formats, int64_t threads, int64_t milliseconds) {
  llvm::Expected<ScratchFolder> folder = ScratchFolder::create("the calibration");
  if (!folder)
    return folder.takeError();
  std::string program = folder->file("calibrate"), output = folder->file("machine.json");
  if (llvm::Error error = makeProgram(formats, *folder, program))
    return std::move(error);
  std::string threadsText = llvm::itostr(threads), millisecondsText = llvm::itostr(milliseconds);
  llvm::SmallVector<llvm::StringRef> arguments{program, "--milliseconds", millisecondsText};
  if (threads > 0)
    arguments.append({"--threads", threadsText});
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), llvm::StringRef(output), std::nullopt};
  std::string problem;
  int status = llvm::sys::ExecuteAndWait(program, arguments, std::nullopt, redirects, 0, 0, &problem);
  if (status != 0)
    return diagnose("", "the calibration program ended with {0}{1}", status, problem.empty() ? "" : ": " + problem);
  auto text = llvm::MemoryBuffer::getFile(output);
  if (!text)
    return diagnose(output, "cannot read: {0}", text.getError().message());
  if (auto profile = placement::readProfile("calibration", (*text)->getBuffer().str()); !profile.ok())
    return diagnose("", "the calibration program printed no profile: {0}", profile.message());
  return (*text)->getBuffer().str();
}

} // namespace

llvm::Expected<placement::Profile> measureThisMachine(llvm::ArrayRef<Format> formats) {
  const CalibrateOptions usual;
  llvm::Expected<std::string> text = measure(formats, usual.threads, usual.milliseconds);
  if (!text)
    return text.takeError();
  return std::move(placement::readProfile("calibration", std::move(*text)).value());
}

llvm::Error calibrate(const CalibrateOptions &options) {
  // One of each kind of code; others are taken for the nearest in bits per weight.
  constexpr Format formats[] = {Format::F32, Format::F16, Format::BF16, Format::Q8_0, Format::Q4_0, Format::Q4_K, Format::Q6_K};
  llvm::Expected<std::string> text = measure(formats, options.threads, options.milliseconds);
  if (!text)
    return text.takeError();
  if (options.output.empty() || options.output == "-") {
    llvm::outs() << *text;
    return llvm::Error::success();
  }
  return writeFile(options.output, *text);
}

} // namespace mcc
