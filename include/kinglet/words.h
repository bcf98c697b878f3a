// Queries that look for words, for keyboards, constrained decoders and entropy coders: a part of
// kinglet.h, which includes it and whose rules hold here.
//
// They are queries about the token that follows the lane's last step, with the errors of all
// queries. Each computes only what its answer needs; the answer is that of computing all words, to
// the last bit. A sum of probabilities is of those that kinglet_session_probabilities gives, added
// up in double in the order of ids, not divided by the sum of all words: a neural cache that is
// still empty makes that less than 1 (kinglet_empty_cache).
#ifndef KINGLET_WORDS_H_
#define KINGLET_WORDS_H_

#include <stdint.h>

#include "kinglet/export.h"
#include "kinglet/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kinglet_session kinglet_session;

// The nucleus: the fewest words, the most probable first and words of equal probability by lower
// id, whose probabilities, added up in this order, are at least `share` of the sum of all words',
// taken without rounding: 1, or less while a neural cache is empty (kinglet_empty_cache). All words
// for a share of 1, and where rounding leaves less. Outputs as for kinglet_session_top_k; the
// number of words is known only afterwards, and *count has it also when the call fails with
// KINGLET_BUFFER_TOO_SMALL.
// Errors: KINGLET_INVALID_ARGUMENT unless 0 < share <= 1, KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_session_top_p(kinglet_session* session, uint32_t lane,
                                                 double share, uint32_t* ids,
                                                 double* log_probabilities, uint64_t capacity,
                                                 uint32_t* count);

// The place of word `id` in the order of kinglet_session_top_k: 1 for the most probable word.
// Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_session_rank(kinglet_session* session, uint32_t lane,
                                                uint32_t id, uint32_t* out);

// The k most probable of the `allowed_count` words `allowed`, which may be in any order and repeat;
// all of them if there are fewer. `allowed` may be NULL if there are none. Outputs as for
// kinglet_session_top_k. Errors: KINGLET_ID_OUT_OF_RANGE, KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_session_allowed_top_k(kinglet_session* session, uint32_t lane,
                                                         const uint32_t* allowed,
                                                         uint64_t allowed_count, uint32_t k,
                                                         uint32_t* ids, double* log_probabilities,
                                                         uint64_t capacity, uint32_t* count);

// The sum of their probabilities, each word's once; 0 for none. Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_session_allowed_probability(kinglet_session* session,
                                                               uint32_t lane,
                                                               const uint32_t* allowed,
                                                               uint64_t allowed_count, double* out);

// The k most probable of the words whose texts begin with the `length` bytes at `prefix`, which
// may be any bytes and need no NUL; all words begin with no bytes. `prefix` may be NULL if `length`
// is 0. Outputs as for kinglet_session_top_k.
// Errors: KINGLET_BUFFER_TOO_SMALL, KINGLET_UNSUPPORTED (ids only).
KINGLET_API kinglet_status kinglet_session_prefix_top_k(kinglet_session* session, uint32_t lane,
                                                        const char* prefix, uint64_t length,
                                                        uint32_t k, uint32_t* ids,
                                                        double* log_probabilities,
                                                        uint64_t capacity, uint32_t* count);

// The sum of their probabilities; 0 if no word begins so. Errors: KINGLET_UNSUPPORTED (ids only).
KINGLET_API kinglet_status kinglet_session_prefix_probability(kinglet_session* session,
                                                              uint32_t lane, const char* prefix,
                                                              uint64_t length, double* out);

// What a prefix can continue with, if not with the code point of a character.
enum kinglet_next_character {
  KINGLET_NEXT_BYTE = 0x110000,   // plus the byte, which begins no character of UTF-8
  KINGLET_NEXT_END = 0x7FFFFFFF,  // nothing: the word is the prefix
};

// For each character that follows the prefix in some word: its code point, or what
// kinglet_next_character says, and the sum of the probabilities of all words that continue with it.
// They are in the byte order of UTF-8, the end of the word first. Each array has room for
// `capacity` elements, and either may be NULL. `*count`, if not NULL, becomes their number, also
// when the call fails with KINGLET_BUFFER_TOO_SMALL.
// Errors: KINGLET_BUFFER_TOO_SMALL, KINGLET_UNSUPPORTED (ids only).
KINGLET_API kinglet_status kinglet_session_next_characters(kinglet_session* session, uint32_t lane,
                                                           const char* prefix, uint64_t length,
                                                           uint32_t* characters,
                                                           double* probabilities, uint64_t capacity,
                                                           uint32_t* count);

// The text that follows, for models whose tokens are pieces of words. A token adds to a text what
// the model's tokenizer joins: a word that follows another begins with a space, the end of a line
// is a newline, and unknown words and marks of sentences spell nothing. Several sequences of tokens
// can spell a text, also such as the tokenizer would not make: all of them count. To follow them
// the call steps streams of its own, forked from the lane; the lane stays as it is, and
// kinglet_session_cancel stops the call between two steps, and between two bytes of the prefix
// while it is planned. The streams' memory is kept for the next call. That, the spellings of the
// words and 168 bytes for each byte of a prefix count towards the model's memory limit; words of
// more than 64 MiB together are KINGLET_UNSUPPORTED.

// The probability that the text which follows begins with the `length` bytes at `prefix`: exactly
// the sum over all sequences of tokens that spell it, whose last one may spell more. 1 for no
// bytes. `*steps`, if `steps` is not NULL, becomes the number of tokens that were stepped.
// Errors: KINGLET_TOO_MANY_STEPS, before any step, if that takes more than `most_steps`, or a
// sequence of more than 1,024 tokens; KINGLET_UNSUPPORTED (ids only, an encoder),
// KINGLET_OUT_OF_MEMORY.
KINGLET_API kinglet_status kinglet_session_text_probability(kinglet_session* session, uint32_t lane,
                                                            const char* prefix, uint64_t length,
                                                            uint64_t most_steps, double* out,
                                                            uint64_t* steps);

// For each character that may follow the prefix: the probability of the prefix with it, so that all
// of them add up to that of the prefix. KINGLET_NEXT_END stands for a token that spells nothing; a
// token that ends inside a character counts for the character's first byte (KINGLET_NEXT_BYTE).
// Outputs as for kinglet_session_next_characters, errors as for it and
// kinglet_session_text_probability.
KINGLET_API kinglet_status kinglet_session_text_next_characters(
    kinglet_session* session, uint32_t lane, const char* prefix, uint64_t length,
    uint64_t most_steps, uint32_t* characters, double* probabilities, uint64_t capacity,
    uint32_t* count, uint64_t* steps);

// The k most probable words that the text may continue with and that begin with the prefix, with the
// space before them; fewer if fewer are found. A word ends before white space and before a token
// that spells nothing, and its probability is that of the word and such an end. They are found by a
// beam: after each token the `beam` most probable beginnings are kept (1 to 1,024), until none can
// be among the best or after `most_steps` steps. So a word may be missing, and one that several
// sequences spell may have too little. `buffer` gets the texts, each with a NUL, offsets[i] where
// text i begins and offsets[*count] their end: it has room for k + 1 numbers, and
// `log_probabilities` for k. Each may be NULL. `*count`, `*needed` (bytes of the texts) and
// `*steps`, where not NULL, are written also when the call fails with KINGLET_BUFFER_TOO_SMALL.
// Errors: KINGLET_INVALID_ARGUMENT (beam), KINGLET_BUFFER_TOO_SMALL, KINGLET_UNSUPPORTED,
// KINGLET_OUT_OF_MEMORY.
KINGLET_API kinglet_status kinglet_session_text_words(
    kinglet_session* session, uint32_t lane, const char* prefix, uint64_t length, uint32_t k,
    uint32_t beam, uint64_t most_steps, char* buffer, uint64_t capacity, uint64_t* needed,
    uint64_t* offsets, double* log_probabilities, uint32_t* count, uint64_t* steps);

// For entropy coders: the integers below 2^32 that belong to word `id`, from *low up to but not
// including *high. Every word has at least one, all words together have all of them in the order of
// ids, and beyond that they are shared out in proportion to the words' probabilities divided by
// their sum, but for roundings of the model's own type. Wherever the model's numbers are the same,
// so are the intervals.
// Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_session_interval(kinglet_session* session, uint32_t lane,
                                                    uint32_t id, uint64_t* low, uint64_t* high);

// The word whose interval has the integer `point`.
KINGLET_API kinglet_status kinglet_session_word_at(kinglet_session* session, uint32_t lane,
                                                   uint32_t point, uint32_t* out);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // KINGLET_WORDS_H_
