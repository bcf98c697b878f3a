// A small byte-level tokenizer.
#ifndef KINGLET_TESTS_SUPPORT_BYTE_PIECES_H_
#define KINGLET_TESTS_SUPPORT_BYTE_PIECES_H_

#include <string>
#include <utility>

#include "format/byte_alphabet.h"
#include "format/text_tables.h"

namespace kinglet {

// Byte b is piece b; then a mark and what two merges and one of their results make.
inline BytePieceTables SmallBytePieces() {
  BytePieceTables tables;
  for (const uint16_t code : ByteAlphabet()) {
    std::string letter;
    AppendCodePoint(code, letter);
    tables.pieces.push_back(std::move(letter));
  }
  const std::string space = tables.pieces[' '];
  for (const std::string& piece : {std::string("<|endoftext|>"), space + "a", std::string("ab"),
                                   space + "ab", space + space}) {
    tables.pieces.push_back(piece);
  }
  tables.marks = {256};
  tables.merges = {{' ', 'a'}, {257, 'b'}, {'a', 'b'}, {' ', ' '}};
  return tables;
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_BYTE_PIECES_H_
