// The tokenizer of `--tokenizer`: a file of another program, or a rule by its name.
#ifndef KINGLET_CONVERTERS_TOKENIZERS_TOKENIZER_FILE_H_
#define KINGLET_CONVERTERS_TOKENIZERS_TOKENIZER_FILE_H_

#include <cstdint>
#include <string>

#include "format/text_tables.h"
#include "kinglet/status.h"

namespace kinglet {

struct TokenizerChoice {
  std::string name;  // a path, or spaces (also words), wikitext, characters
  bool lower_case = false;
  // subword-nmt's --vocabulary and --vocabulary-threshold; for byte-pair codes only.
  std::string known_tokens;  // a path; empty: every token is known
  uint64_t threshold = 0;
};

// Recognises the file by its content. Errors: those of reading files, KINGLET_INVALID_CHECKPOINT
// and KINGLET_INVALID_ARGUMENT; the text starts with the path.
Result<TextTables> ReadTokenizer(const TokenizerChoice& choice);

struct FoundTokenizer {
  std::string path;        // empty if there is no such file
  bool has_words = false;  // the pieces are the model's words
};

// The tokenizer that `family`'s framework writes to the folder of its checkpoint: fairseq's
// bpecodes, code or sentencepiece.bpe.model, icefall's lang_bpe_*/bpe.model, ESPnet's bpe.model,
// SpeechBrain's tokenizer.ckpt, BERT's vocab.txt or a tokenizer.json that is BERT's, GPT-2's
// tokenizer.json or vocab.json. None if there is no such file, or several.
FoundTokenizer TokenizerNextTo(const std::string& checkpoint, const std::string& family);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TOKENIZERS_TOKENIZER_FILE_H_
