// The character CNN that a fairseq language model may have in place of its embedding's table
// (--character-embeddings, CharacterTokenEmbedder): the table that it amounts to, computed from the
// words' spellings, which follow from the dictionary and are not in the checkpoint.
#ifndef KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_CHARACTERS_H_
#define KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_CHARACTERS_H_

#include <string>
#include <vector>

#include "converters/families/fairseq_config.h"
#include "converters/families/families.h"
#include "converters/network/network.h"
#include "format/blocks.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

struct FairseqDictionary {
  std::string path;                // for messages
  std::vector<std::string> words;  // by id, <s>, <pad>, </s> and <unk> first
};

// The words of FamilyInput::vocabulary, or else of the dict.txt next to the checkpoint. Errors:
// KINGLET_NOT_FOUND if there is neither; KINGLET_INVALID_CHECKPOINT for a file of words that does
// not begin with fairseq's four; those of ReadVocabularyFile.
Result<FairseqDictionary> ReadFairseqDictionary(const FamilyInput& input);

// Claims the CNN's tensors and adds the table, [words, width], as decoder.embed_tokens.weight, the
// name of a table that is trained as such. Its values are computed when it is read: the row of
// <pad> is zero, those of </s> and <unk> are trained (symbol_embeddings), and that of <s> is the
// CNN's of paddings alone. Notes for the user report what was computed and how many words are
// longer than a spelling. REQUIRES: config.characters; at least four words.
TensorId AddCharacterTable(const FairseqConfig& config, const FairseqDictionary& dictionary,
                           Network& network);
// Claims the CNN's tensors and describes it as one that stays in the model, with a stream's cache
// of config.characters->cache_rows rows: <s> and <pad> are a table of two rows that is derived,
// </s> and <unk> the trained ones, and every other word is spelt. Errors: KINGLET_INVALID_ARGUMENT
// for a dictionary without other words. REQUIRES: as AddCharacterTable; cache_rows.
Status KeepCharacters(const FairseqConfig& config, const FairseqDictionary& dictionary,
                      Network& network, AdaptiveEmbedding& embedding);
// Marks the CNN's tensors as unused, because a recipe makes the input. REQUIRES: config.characters.
void MarkCharactersUnused(const FairseqConfig& config, Network& network);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_CHARACTERS_H_
