// The table of pre-tokenizer names: facts about published models, one row per set of patterns.
//
// Where llama.cpp approximates a model's pattern because its own matcher lacks \p{Lu} and the like, the model's pattern
// stands here.
#include "compiler/Tokenizer/PreTokenizerTable.h"

namespace mcc {

namespace {

#define CONTRACTIONS "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define WORDS_WITH_ONE_BEFORE "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define SYMBOLS_AND_SPACES " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define LOWER "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
#define ONE_BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define SYMBOLS_WITH_SLASH " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

constexpr const char *gpt2[] = {GPT2};
constexpr const char *llama3[] = {CONTRACTIONS "|" WORDS_WITH_ONE_BEFORE "|\\p{N}{1,3}|" SYMBOLS_AND_SPACES};
constexpr const char *qwen2[] = {CONTRACTIONS "|" WORDS_WITH_ONE_BEFORE "|\\p{N}|" SYMBOLS_AND_SPACES};
constexpr const char *singleDigits[] = {"\\p{N}", GPT2};
constexpr const char *falcon[] = {"[\\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"};
constexpr const char *fallback[] = {"[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"};
constexpr const char *bloom[] = {" ?[^(\\s|.,!?…。，、।۔،)]+"};
constexpr const char *viking[] = {" ?[^(\\s|.,!?…。，、।۔،)]+", "\\p{N}"};
constexpr const char *deepseekCoder[] = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[\\u4E00-\\u9FA5\\u0800-\\u4E00\\uAC00-\\uD7FF]+", "\\p{N}"};
constexpr const char *deepseekLlm[] = {
    "[\\r\\n]",
    ("\\s?[A-Za-z\\u00B5\\u00C0-\\u00D6\\u00D8-\\u00F6\\u00F8-\\u01BA\\u01BC-\\u01BF\\u01C4-\\u0293\\u0295-\\u02AF"
     "\\u0370-\\u0373\\u0376\\u0377\\u037B-\\u037D\\u037F\\u0386\\u0388-\\u038A\\u038C\\u038E-\\u03A1"
     "\\u03A3-\\u03F5\\u03F7-\\u0481\\u048A-\\u052F\\u0531-\\u0556\\u10A0-\\u10C5\\u13A0-\\u13F5\\u13F8-\\u13FD"
     "\\u1C90-\\u1CBA\\u1CBD-\\u1CBF\\u1D00-\\u1D2B\\u1D6B-\\u1D77\\u1D79-\\u1D9A\\u1E00-\\u1F15\\u1F18-\\u1F1D"
     "\\u1F20-\\u1F45\\u1F48-\\u1F4D\\u1F50-\\u1F57\\u1F59\\u1F5B\\u1F5D\\u1F5F-\\u1F7D\\u1F80-\\u1FB4"
     "\\u1FB6-\\u1FBC\\u1FBE\\u1FC2-\\u1FC4\\u1FC6-\\u1FCC\\u1FD0-\\u1FD3\\u1FD6-\\u1FDB\\u1FE0-\\u1FEC"
     "\\u1FF2-\\u1FF4\\u1FF6-\\u1FFC\\u2102\\u2107\\u210A-\\u2113\\u2115\\u2119-\\u211D\\u2124\\u2126\\u2128"
     "\\u212A-\\u212D\\u212F-\\u2134\\u2139\\u213C-\\u213F\\u2145-\\u2149\\u214E\\u2183\\u2184\\u2C00-\\u2C7B"
     "\\u2C7E-\\u2CE4\\u2CEB-\\u2CEE\\u2CF2\\u2CF3\\uA640-\\uA66D\\uA680-\\uA69B\\uA722-\\uA76F\\uA771-\\uA787"
     "\\uA78B-\\uA78E\\uAB70-\\uABBF\\uFB00-\\uFB06\\uFB13-\\uFB17\\uFF21-\\uFF3A\\uFF41-\\uFF5A"
     "\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}"
     "\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}]+"),
    "\\s?[!-/:-~\\uFF01-\\uFF0F\\uFF1A-\\uFF5E\\u2018-\\u201F\\u3000-\\u3002]+",
    "\\s+$",
    "[\\u4E00-\\u9FA5\\u0800-\\u4E00\\uAC00-\\uD7FF]+",
    "\\p{N}+"};
constexpr const char *deepseek3[] = {
    "\\p{N}{1,3}", "[\\u4E00-\\u9FA5\\u3040-\\u309F\\u30A0-\\u30FF]+",
    ("[!\"#$%\\&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+"
    "[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")};
constexpr const char *tekken[] = {ONE_BEFORE "[" UPPER "]*[" LOWER "]+|" ONE_BEFORE "[" UPPER "]+[" LOWER
                                             "]*|\\p{N}|" SYMBOLS_WITH_SLASH};
constexpr const char *gpt4o[] = {ONE_BEFORE "[" UPPER "]*[" LOWER "]+" CONTRACTIONS "?|" ONE_BEFORE "[" UPPER "]+[" LOWER
                                            "]*" CONTRACTIONS "?|\\p{N}{1,3}|" SYMBOLS_WITH_SLASH};
constexpr const char *bailing[] = {"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|" WORDS_WITH_ONE_BEFORE
                                   "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"};
constexpr const char *seedCoder[] = {CONTRACTIONS "|" WORDS_WITH_ONE_BEFORE
                                                  "|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"};
constexpr const char *qwen35[] = {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*"
                                               "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"};
constexpr const char *superBpe[] = {"\\p{N}+", "(?=(\\d{3})+(?!\\d))"};

struct Row {
  llvm::StringLiteral name;
  PreTokenizerEntry entry;
};

const Row table[] = {
    {"default", {fallback}},
    {"gpt-2", {gpt2}},
    {"phi-2", {gpt2}},
    {"mpt", {gpt2}},
    {"olmo", {gpt2}},
    {"jais", {gpt2}},
    {"trillion", {gpt2}},
    {"granite-docling", {gpt2}},
    {"gigachat", {gpt2}},
    {"a.x-4.0", {gpt2}},
    {"mellum", {gpt2}},
    {"llama-bpe", {llama3, true, true}},
    {"llama3", {llama3, true, true}},
    {"llama-v3", {llama3, true, true}},
    {"falcon3", {llama3, true, true}},
    {"falcon-h1", {llama3, true, true}},
    {"pixtral", {llama3, true, true}},
    {"midm-2.0", {llama3, true, true}},
    {"lfm2", {llama3, true, true}},
    {"dbrx", {llama3}},
    {"smaug-bpe", {llama3}},
    {"glm4", {llama3}},
    {"chatglm-bpe", {llama3}},
    {"qwen2", {qwen2}},
    {"deepseek-r1-qwen", {qwen2}},
    {"stablelm2", {qwen2}},
    {"hunyuan", {qwen2}},
    {"megrez", {qwen2}},
    {"solar-open", {qwen2}},
    {"grok-2", {qwen2}},
    {"qwen35", {qwen35}},
    {"starcoder", {singleDigits}},
    {"refact", {singleDigits}},
    {"command-r", {singleDigits}},
    {"smollm", {singleDigits}},
    {"codeshell", {singleDigits}},
    {"exaone", {singleDigits}},
    {"minerva-7b", {singleDigits}},
    {"falcon", {falcon}},
    {"deepseek-llm", {deepseekLlm}},
    {"deepseek-coder", {deepseekCoder}},
    {"deepseek-v3", {deepseek3}},
    {"hunyuan-dense", {deepseek3}},
    {"bloom", {bloom}},
    {"poro-chat", {bloom}},
    {"gpt3-finnish", {bloom}},
    {"viking", {viking}},
    {"tekken", {tekken, true, true}},
    {"gpt-4o", {gpt4o}},
    {"llama4", {gpt4o}},
    {"bailingmoe", {bailing}},
    {"seed-coder", {seedCoder}},
    {"superbpe", {superBpe}},
};

} // namespace

const PreTokenizerEntry *findPreTokenizer(llvm::StringRef name) {
  for (const Row &row : table)
    if (row.name == name)
      return &row.entry;
  return nullptr;
}

std::vector<llvm::StringRef> preTokenizerNames() {
  std::vector<llvm::StringRef> names;
  for (const Row &row : table)
    names.push_back(row.name);
  return names;
}

} // namespace mcc
