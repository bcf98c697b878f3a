// What the network predicts of the next bit: the probabilities of the tokens that continue the
// bytes so far, added up on both sides of the bit. All in integers from the tokens' probabilities
// on.
#ifndef KINGLET_RUNTIME_COMPRESS_TOKEN_GUIDE_H_
#define KINGLET_RUNTIME_COMPRESS_TOKEN_GUIDE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/compress/adaptive.h"
#include "runtime/compress/byte_model.h"
#include "runtime/compress/token_follower.h"
#include "runtime/compress/token_spellings.h"
#include "runtime/special_tokens.h"

namespace kinglet::compress {

class TokenGuide {
 public:
  // REQUIRES: the spellings, which are of this style, outlive the guide.
  TokenGuide(const TokenSpellings& spellings, TokenStyle style, const SpecialTokens& special);

  // Ids that the network has to process, in order, before it is asked for all probabilities, which
  // SetProbabilities then takes. Empty if the predictions so far serve on.
  const std::vector<uint32_t>& waiting() const { return waiting_; }
  // Takes the probabilities of all ids after those that were waiting.
  void SetProbabilities(std::span<const float> probabilities);

  // Of the next bit. REQUIRES: nothing is waiting.
  Hint Predict();
  // Takes the bit that was predicted.
  void Update(bool bit);

 private:
  void BeginByte();
  void EndByte(uint8_t byte);
  size_t EndKind() const;

  const TokenSpellings* spellings_;
  SpecialTokens special_;
  TokenFollower follower_;
  std::vector<uint32_t> waiting_;
  std::vector<TokenFollower::Token> done_;
  std::vector<uint32_t> upto_;  // sums of the tokens' parts before each rank

  // Tokens that were known count for the network, others against it. While it sleeps, tokens are
  // not looked for.
  int credit_ = 0;
  uint32_t asleep_ = 0;  // bytes

  // The byte that is predicted.
  bool active_ = false;
  TokenSpellings::Range range_ = {};
  uint64_t ending_ = 0;  // the part of texts in which the token ends here, or none begins yet
  unsigned bits_so_far_ = 1;
  int bit_index_ = 0;
  size_t context_ = 0, middle_ = 0;
  uint64_t ending_one_ = 0;
  uint8_t last_byte_ = '\n';
  // The bytes after a token's end, by the kind of its last byte, or between tokens.
  static constexpr size_t kEndKinds = 5;
  std::vector<AdaptiveBit> ends_;
  std::array<AdaptiveBit, 3> stays_;  // that no token begins, by the kind of the last byte
};

}  // namespace kinglet::compress

#endif  // KINGLET_RUNTIME_COMPRESS_TOKEN_GUIDE_H_
