// The serialised tokenizer: what the compiler writes as the segment "tokenizer" and the runtime uses in place.
//
// Little-endian and position-independent: a header, a table of sections, then the sections, each at a multiple of
// 8 bytes from the start. Tables that a lookup needs (vocabulary hash, merge hash, sorted ids) are stored ready for
// use, so that loading is one checking pass. The settings section is a byte stream (SettingsReader) in this order:
//   u8 model, u32 model flags, i32 unknown id, str continuing-subword prefix, str end-of-word suffix, f64 minimal score,
//   str word separator, 32 bytes: a bit for every byte that some token has before a separator inside it,
//   u8 added-token matching, u32 count + ids put before the text, u32 count + ids put after it,
//   u32 count + normalizer steps, u32 count + pre-tokenizer steps, u32 count + decoder steps,
//   u32 count + added tokens (u32 id, u8 flags, str text to match),
//   u32 count + shown texts (u32 id, str): tokens that are decoded as another text than the vocabulary has.
// where str is u32 bytes + UTF-8. A step is its u8 kind and the fields named beside the kind below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace mcc::tokenizer {

inline constexpr char imageMagic[8] = {'M', 'C', 'C', 'T', 'O', 'K', 'E', 'N'};
inline constexpr uint32_t imageVersion = 1;
inline constexpr uint64_t sectionAlignment = 8;

/// Ids and counts are below this: more than any published vocabulary, and small enough that sizes cannot overflow.
inline constexpr uint32_t maxTokens = 1u << 24;
inline constexpr uint32_t maxMerges = 1u << 26;

enum class SectionKind : uint32_t {
  Settings = 1,
  TextOffsets,    ///< u32[tokens + 1], ascending: where the text of each token begins in TextBytes
  TextBytes,      ///< the texts, back to back
  TokenFlags,     ///< u8[tokens], TokenFlag bits
  VocabularyHash, ///< u32[power of two]: id + 1, or 0 for a free slot; linear probing from hashText
  MergeHash,      ///< MergeSlot[power of two]; linear probing from hashPair; absent where there are no merges
  Scores,         ///< f64[tokens]; Unigram and ScoredMerges
  SortedIds,      ///< u32[n]: the model's tokens in byte order of their texts; Unigram
  Charsmap,       ///< the precompiled normalisation map: u32 trie units, u32[units], then NUL-ended strings
};

struct ImageHeader {
  char magic[8];
  uint32_t version;
  uint32_t sectionCount;
  uint64_t totalBytes;
  uint32_t tokenCount;
  uint32_t mergeCount;
};

struct ImageSection {
  SectionKind kind;
  uint32_t reserved; ///< 0
  uint64_t offset;   ///< from the start of the image
  uint64_t bytes;
};

/// One merge: the adjacent pieces `left` and `right` become `result`; lower ranks go first. result = freeSlot: none.
struct MergeSlot {
  uint32_t left, right, rank, result;
};
inline constexpr uint32_t freeSlot = UINT32_MAX;

enum TokenFlag : uint8_t {
  tokenAbsent = 1,      ///< no token has this id
  tokenSpecial = 2,     ///< left out of text where special tokens are skipped
  tokenVerbatim = 4,    ///< decoded as it is written, without the decoder's byte or space rules (GGUF)
  tokenByte = 8,        ///< stands for one byte, <0xNN> (GGUF)
  tokenSilent = 32,     ///< decoded as nothing (GGUF: unused)
  tokenAdded = 16,      ///< found in the text before the model sees it; not in VocabularyHash where the model lacks it
};

enum class ModelKind : uint8_t {
  Bpe,          ///< merges by rank
  Unigram,      ///< the segmentation of the highest total score
  ScoredMerges, ///< sentencepiece BPE as GGUF stores it: any adjacent pair that forms a token, highest score first
};

enum ModelFlag : uint32_t {
  modelIgnoreMerges = 1,  ///< Bpe: a piece that is a token is taken whole
  modelFuseUnknown = 2,   ///< neighbouring unknown characters become one unknown token
  modelByteFallback = 4,  ///< characters outside the vocabulary become the tokens <0xNN> of their bytes
  modelSplitUnknown = 8,  ///< Bpe: a merged piece without a token becomes the tokens of its characters (GGUF)
};

/// How added tokens are found in the text before anything else.
enum class AddedMatching : uint8_t {
  LeftmostLongest, ///< in one pass, the first and longest match (Hugging Face)
  LongestFirst,    ///< token by token, longest first, in what the longer ones left (llama.cpp)
};

enum AddedFlag : uint8_t {
  addedSingleWord = 1, ///< only between non-word characters
  addedStripLeft = 2,  ///< takes white space before it
  addedStripRight = 4, ///< takes white space after it
  addedNormalized = 8, ///< matched after normalisation
};

enum class NormalizerKind : uint8_t {
  Nfc,
  Nfd,
  Nfkc,
  Nfkd,
  Lowercase,
  Strip,         ///< u8 left, u8 right
  StripAccents,  ///< removes marks
  ReplaceText,   ///< str pattern, str content
  ReplaceRegex,  ///< str PCRE2 pattern, str content
  Prepend,       ///< str; nothing is put before an empty text
  ByteLevel,     ///< every byte becomes its printable character
  Charsmap,      ///< the section Charsmap
  Nmt,           ///< drops control characters, turns odd white space into spaces
  Bert,          ///< u8 clean text, u8 spaces around Chinese characters, u8 strip accents, u8 lowercase
};

enum class SplitBehavior : uint8_t { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

enum class PrependScheme : uint8_t { Never, First, Always };

enum class PreTokenizerKind : uint8_t {
  PrependSpace,    ///< before a piece that does not begin with one
  ByteLevel,       ///< every byte becomes its printable character
  SplitRegex,      ///< u8 behavior, u8 invert, str PCRE2 pattern
  SplitText,       ///< u8 behavior, u8 invert, str
  Digits,          ///< u8 one by one
  Punctuation,     ///< u8 behavior
  WhitespaceSplit,
  BertPunctuation,
  Metaspace,       ///< u8 scheme, u8 split, str replacement (one character)
  FixedLength,     ///< u32 characters
};

enum class DecoderKind : uint8_t {
  ByteLevel,
  ByteFallback,
  Fuse,
  Metaspace,    ///< u8 scheme, str replacement
  Strip,        ///< str content (one character), u32 at the start, u32 at the end
  ReplaceText,  ///< str pattern, str content
  ReplaceRegex, ///< str PCRE2 pattern, str content
  WordPiece,    ///< str prefix, u8 clean up
  WordSuffix,   ///< str suffix: the end of a word, a space save for the last token
  Join,         ///< puts a space between tokens: what decoding without a decoder does
  PieceBytes,   ///< u8 byte level: what llama.cpp prints for a token, by its flags
};

/// Returns the 64-bit hash of `text` that VocabularyHash is built on.
inline uint64_t hashText(std::string_view text) {
  constexpr uint64_t multiplier = 0x9E3779B97F4A7C15;
  uint64_t hash = text.size() * multiplier;
  const char *at = text.data();
  size_t left = text.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    hash = (hash ^ word) * multiplier;
    hash ^= hash >> 29;
  }
  uint64_t tail = 0;
  for (size_t i = 0; i < left; ++i)
    tail |= uint64_t(uint8_t(at[i])) << (8 * i);
  hash = (hash ^ tail) * multiplier;
  hash ^= hash >> 32;
  return hash * 0xD6E8FEB86659FD93 ^ hash >> 29;
}

/// Returns the 64-bit hash of a pair of ids that MergeHash is built on.
inline uint64_t hashPair(uint32_t left, uint32_t right) {
  uint64_t hash = (uint64_t(left) << 32 | right) * 0x9E3779B97F4A7C15;
  return hash ^ hash >> 32;
}

} // namespace mcc::tokenizer
