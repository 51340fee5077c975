#include "compiler/Driver/GoldenCommand.h"

#include "compiler/Driver/BackendInputs.h"
#include "compiler/Support/Error.h"
#include "compiler/Support/ScratchFolder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <nlohmann/json.hpp>

namespace mcc {
namespace {

// Returns the prompt that `text` spells, ids separated by commas.
llvm::Expected<BackendSequence> parsePrompt(llvm::StringRef text, int64_t newTokens, const GoldenLimits &limits) {
  BackendSequence sequence;
  sequence.newTokens = newTokens;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',');
  for (llvm::StringRef part : parts) {
    int64_t id;
    if (part.trim().getAsInteger(10, id))
      return diagnose("", "--tokens takes ids separated by commas, not {0}", quoted(text));
    if (id < 0 || id >= limits.vocabulary)
      return diagnose("", "--tokens: the vocabulary has {0} ids, 0 to {1}; {2} is none", limits.vocabulary,
                      limits.vocabulary - 1, id);
    sequence.prompt.push_back(static_cast<int32_t>(id));
  }
  const int64_t needed = static_cast<int64_t>(sequence.prompt.size()) + newTokens - 1;
  if (needed > limits.context)
    return diagnose("", "--tokens: a prompt of {0} and {1} new tokens need {2} cache positions; the context is {3}",
                    sequence.prompt.size(), newTokens, needed, limits.context);
  return sequence;
}

llvm::Expected<std::vector<BackendSequence>> sequencesOf(const GoldenOptions &options) {
  llvm::Expected<GoldenLimits> limits = goldenLimits(options.model);
  if (!limits)
    return limits.takeError();
  std::vector<BackendSequence> sequences;
  for (const std::string &prompt : options.prompts) {
    llvm::Expected<BackendSequence> sequence = parsePrompt(prompt, options.newTokens, *limits);
    if (!sequence)
      return sequence.takeError();
    sequences.push_back(std::move(*sequence));
  }
  if (options.sequences.empty())
    return sequences;
  llvm::Expected<runtime::Golden> golden = openGolden(options.sequences, *limits);
  if (!golden)
    return golden.takeError();
  for (const runtime::GoldenSequence &sequence : golden->sequences)
    sequences.push_back({sequence.prompt, static_cast<int64_t>(sequence.expect.size())});
  return sequences;
}

// The golden file, one sequence a line.
std::string goldenText(llvm::StringRef backend, llvm::ArrayRef<BackendSequence> sequences,
                       llvm::ArrayRef<Generated> generated) {
  std::string text =
      "{\"reference\": " + nlohmann::json("mcc, back end " + backend.str()).dump() + ", \"sequences\": [";
  const char *separator = "\n";
  for (auto [sequence, found] : llvm::zip_equal(sequences, generated)) {
    nlohmann::ordered_json entry;
    entry["prompt"] = sequence.prompt;
    entry["expect"] = found.tokens;
    entry["margin"] = found.margins;
    text += separator + entry.dump();
    separator = ",\n";
  }
  return text + "\n]}\n";
}

} // namespace

llvm::Error recordGolden(const GoldenOptions &options) {
  llvm::Expected<const Backend *> backend = usableBackend(options.backend);
  if (!backend)
    return backend.takeError();
  llvm::Expected<std::vector<BackendSequence>> sequences = sequencesOf(options);
  if (!sequences)
    return sequences.takeError();
  llvm::Expected<ScratchFolder> folder = ScratchFolder::create("the model");
  if (!folder)
    return folder.takeError();
  BackendModel model = options.model;
  model.output = folder->file("out");
  llvm::Expected<std::vector<Generated>> generated = (*backend)->run(model, *sequences, /*margins=*/true);
  if (!generated)
    return generated.takeError();
  std::string text = goldenText((*backend)->name(), *sequences, *generated);
  // Under another name first: the file is there as a whole or not at all.
  if (llvm::Error error = llvm::writeToOutput(options.output, [&](llvm::raw_ostream &stream) {
        stream << text;
        return llvm::Error::success();
      }))
    return diagnose(options.output, "cannot write: {0}", llvm::errorToErrorCode(std::move(error)).message());
  return llvm::Error::success();
}

} // namespace mcc
