// The codebooks of the formats iq1_*, iq2_* and iq3_*: which vectors of levels there are, and their numbers.
#pragma once

#include <cstdint>
#include <vector>

namespace mcc {

/// Codewords of 8 or 4 digits, each the index of a level.
class Codebook {
public:
  /// Expands a set of numbers; see Codebooks.cpp.
  Codebook(const uint64_t *set, int words, int levels, int digits);
  /// Returns the digits of word `index`, which must be below size().
  const uint8_t *word(int index) const { return all.data() + index * width; }
  int size() const { return static_cast<int>(all.size()) / width; }

private:
  std::vector<uint8_t> all;
  int width = 0;
};

/// Each expands its book on the first call; thread-safe.
const Codebook &codebookIq2Xxs(); ///< 256 words of 8 digits below 3
const Codebook &codebookIq2Xs();  ///< 512
const Codebook &codebookIq2S();   ///< 1024
const Codebook &codebookIq1();    ///< 2048: iq1_s and iq1_m
const Codebook &codebookIq3Xxs(); ///< 256 words of 4 digits below 8
const Codebook &codebookIq3S();   ///< 512

} // namespace mcc
