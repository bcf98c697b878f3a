// Back-off n-gram models in the ARPA format, which SRILM, KenLM and others write.
#ifndef KINGLET_CONVERTERS_NGRAMS_ARPA_H_
#define KINGLET_CONVERTERS_NGRAMS_ARPA_H_

#include <memory>
#include <string>

#include "kinglet/status.h"
#include "runtime/ngrams/ngram_model.h"
#include "runtime/ngrams/ngram_table.h"

namespace kinglet {

// Reads a model of 1 to 8 words, plain or packed by gzip or zstd; "-" is standard input. Lines end
// in LF or CR LF; fields are separated by tabs or spaces. Lines before \data\ are comments. Without
// <unk> (or <UNK>) the table gets one with KenLM's probability, 10^-100. The words of an n-gram but
// the last must be an n-gram too; those but the first may be missing, as SRILM's pruning leaves
// them. Memory holds the table and the n-grams of one length. Errors: those of TextInput;
// KINGLET_INVALID_ARGUMENT, naming file and line. May throw std::bad_alloc.
Result<NgramTable> ReadArpa(const std::string& path);

// The model of an n-gram file (docs/NGRAMS.md) or of an ARPA file, which its first bytes tell.
// Errors: those of NgramModel::Open and ReadArpa.
Result<std::shared_ptr<const NgramModel>> OpenNgrams(const std::string& path);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_NGRAMS_ARPA_H_
