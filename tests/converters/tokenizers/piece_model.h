// A SentencePiece model of a few pieces, as protobuf.
#ifndef KINGLET_TESTS_CONVERTERS_TOKENIZERS_PIECE_MODEL_H_
#define KINGLET_TESTS_CONVERTERS_TOKENIZERS_PIECE_MODEL_H_

#include <cstdint>
#include <cstring>
#include <string>

namespace kinglet {

inline std::string ProtoVarint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
inline std::string ProtoText(uint64_t field, const std::string& text) {
  return ProtoVarint(field << 3 | 2) + ProtoVarint(text.size()) + text;
}
inline std::string ProtoNumber(uint64_t field, uint64_t value) {
  return ProtoVarint(field << 3) + ProtoVarint(value);
}
inline std::string ProtoPiece(const std::string& text, float score, uint64_t type) {
  std::string bits(sizeof score, '\0');
  std::memcpy(bits.data(), &score, sizeof score);
  return ProtoText(1, ProtoText(1, text) + ProtoVarint(2 << 3 | 5) + bits + ProtoNumber(3, type));
}

// BPE: <unk>, "a" and "ab"; spaces are kept.
inline std::string SmallModel() {
  return ProtoPiece("<unk>", 0, 2) + ProtoPiece("a", -2, 1) + ProtoPiece("ab", -1.5F, 1) +
         ProtoText(2, ProtoNumber(3, 2)) + ProtoText(3, ProtoText(1, "id") + ProtoNumber(4, 0));
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_TOKENIZERS_PIECE_MODEL_H_
