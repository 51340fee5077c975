// A checkpoint's tokenizer.json often leaves BOS to the library around it; the compiler knows and says so in the flags.
#include "runtime-lib/src/TextPrompt.h"

#include "runtime-lib/src/Text.h"

namespace mcc::runtime {

Result<std::vector<int32_t>> encodePrompt(const Tokenizer &tokenizer, const MccModel &model, std::string_view text,
                                          bool addSpecial) {
  std::string error;
  std::vector<int32_t> ids = tokenizer.encode(text, addSpecial, &error);
  if (!error.empty())
    return Failure{concat("the text cannot be encoded: ", error)};
  const bool wantsBos = addSpecial && (model.flags & MCC_MODEL_ADD_BOS) != 0 && model.bosToken >= 0;
  if (wantsBos && (ids.empty() || ids.front() != model.bosToken))
    ids.insert(ids.begin(), model.bosToken);
  return ids;
}

} // namespace mcc::runtime
