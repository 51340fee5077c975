// Reading a published tokenizer and turning it into the serialised form that the runtime maps.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace mcc {

class GgufFile;

/// Reads a Hugging Face tokenizer.json; the result behaves as the `tokenizers` library does with the file. Whatever that
/// library would do and the runtime cannot is refused by name at `file:line:column`. Truncation and padding of the
/// file are not followed: they are for training. `bos`, where given, is put before every text if the file has no
/// post-processor, which leaves open what goes around one.
llvm::Expected<std::vector<uint8_t>> importTokenizerJson(llvm::StringRef path, std::optional<int32_t> bos = std::nullopt);
/// The same for the text of a file that messages call `file`.
llvm::Expected<std::vector<uint8_t>> parseTokenizerJson(llvm::StringRef text, llvm::StringRef file,
                                                        std::optional<int32_t> bos = std::nullopt);

/// Reads the tokenizer of a GGUF file (tokenizer.ggml.*): the kinds "gpt2" and "llama". The result behaves as llama.cpp
/// does with special tokens parsed.
llvm::Expected<std::vector<uint8_t>> importGgufTokenizer(const GgufFile &file);

} // namespace mcc
