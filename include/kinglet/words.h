// Queries that look for tokens and words, for keyboards, constrained decoders and entropy coders: a
// part of kinglet.h, which includes this file and whose rules apply here.
//
// The functions are queries about the token that follows the lane's last step, with the errors of
// all queries (queries.h). Each computes only what its answer needs; the answer equals, to the last
// bit, that of computing all tokens. A sum of probabilities adds up those that
// kinglet_session_probabilities gives, in double in the order of ids, and is not divided by the sum
// of all tokens, which is less than 1 while a neural cache is still empty (kinglet_empty_cache).
#ifndef KINGLET_WORDS_H_
#define KINGLET_WORDS_H_

#include <stdint.h>

#include "kinglet/export.h"
#include "kinglet/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kinglet_session kinglet_session;

// The nucleus: the fewest tokens, the most probable first and tokens of equal probability by lower
// id, whose probabilities, added up in this order, reach the fraction `share` of the sum of all
// tokens' probabilities, taken without rounding: 1, or less while a neural cache is empty
// (kinglet_empty_cache). All tokens for a fraction of 1, and where rounding leaves less. Outputs as
// for kinglet_session_top_k. The number of tokens is known only afterwards: *count becomes that
// number also when the call fails with KINGLET_BUFFER_TOO_SMALL.
// Errors: KINGLET_INVALID_ARGUMENT unless 0 < share <= 1, KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_session_top_p(kinglet_session* session, uint32_t lane,
                                                 double share, uint32_t* ids,
                                                 double* log_probabilities, uint64_t capacity,
                                                 uint32_t* count);

// The rank of token `id` in the order of kinglet_session_top_k: 1 for the most probable token.
// Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_session_rank(kinglet_session* session, uint32_t lane,
                                                uint32_t id, uint32_t* out);

// The k most probable of the `allowed_count` tokens `allowed`, which may be in any order and
// repeat; all of them if there are fewer. `allowed` may be NULL if `allowed_count` is 0. Outputs as
// for kinglet_session_top_k. Errors: KINGLET_ID_OUT_OF_RANGE, KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_session_allowed_top_k(kinglet_session* session, uint32_t lane,
                                                         const uint32_t* allowed,
                                                         uint64_t allowed_count, uint32_t k,
                                                         uint32_t* ids, double* log_probabilities,
                                                         uint64_t capacity, uint32_t* count);

// The sum of the probabilities of the `allowed_count` tokens `allowed`, in which a repeated token
// counts once; 0 if `allowed_count` is 0. Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_session_allowed_probability(kinglet_session* session,
                                                               uint32_t lane,
                                                               const uint32_t* allowed,
                                                               uint64_t allowed_count, double* out);

// The k most probable of the tokens whose texts begin with the `length` bytes at `prefix`, which
// may be any bytes and need no NUL. With a length of 0 `prefix` may be NULL, and every token
// counts. Outputs as for kinglet_session_top_k.
// Errors: KINGLET_BUFFER_TOO_SMALL, KINGLET_UNSUPPORTED (ids only).
KINGLET_API kinglet_status kinglet_session_prefix_top_k(kinglet_session* session, uint32_t lane,
                                                        const char* prefix, uint64_t length,
                                                        uint32_t k, uint32_t* ids,
                                                        double* log_probabilities,
                                                        uint64_t capacity, uint32_t* count);

// The sum of the probabilities of the tokens whose texts begin with the `length` bytes at `prefix`;
// 0 if no token does. Errors: KINGLET_UNSUPPORTED (ids only).
KINGLET_API kinglet_status kinglet_session_prefix_probability(kinglet_session* session,
                                                              uint32_t lane, const char* prefix,
                                                              uint64_t length, double* out);

// Continuations of a prefix other than the code point of a character.
enum kinglet_next_character {
  KINGLET_NEXT_BYTE = 0x110000,   // plus a byte that begins no character of UTF-8
  KINGLET_NEXT_END = 0x7FFFFFFF,  // the end: the prefix is the complete text
};

// The continuations of the `length` bytes at `prefix` in the texts of tokens: characters[i] becomes
// the code point of a character that follows the prefix in the text of some token, or a value of
// kinglet_next_character, and probabilities[i] the sum of the probabilities of all tokens that
// continue so. Continuations are in the byte order of UTF-8, the end of the text first. Each array
// has room for `capacity` elements, and either may be NULL. `*count`, if `count` is not NULL,
// becomes the number of continuations, also when the call fails with KINGLET_BUFFER_TOO_SMALL.
// Errors: KINGLET_BUFFER_TOO_SMALL, KINGLET_UNSUPPORTED (ids only).
KINGLET_API kinglet_status kinglet_session_next_characters(kinglet_session* session, uint32_t lane,
                                                           const char* prefix, uint64_t length,
                                                           uint32_t* characters,
                                                           double* probabilities, uint64_t capacity,
                                                           uint32_t* count);

// The functions kinglet_session_text_.. are about the text that follows, for models whose tokens
// are pieces of words. A token spells what the model's tokenizer joins: a word that follows another
// begins with a space, the end of a line is a newline, and unknown words and marks of sentences
// spell nothing. Several sequences of tokens can spell the same text, also sequences that the
// tokenizer would not make: all of them count. To follow the sequences, a call steps streams of its
// own, forked from the lane, whose own stream does not change. kinglet_session_cancel stops the
// call between two steps, and between two bytes of the prefix while it plans them. The streams'
// memory is kept for the next call. The streams, the spellings of the tokens and 168 bytes for each
// byte of a prefix count towards the model's memory limit. A vocabulary of more than 64 MiB of text
// is KINGLET_UNSUPPORTED.

// The probability that the text which follows begins with the `length` bytes at `prefix`: exactly
// the sum over all sequences of tokens that spell the prefix, whose last token may spell more. 1 if
// `length` is 0. `*steps`, if `steps` is not NULL, becomes the number of tokens that were stepped.
// Errors: KINGLET_TOO_MANY_STEPS, before any step, if the sum takes more than `most_steps` steps or
// a sequence of more than 1,024 tokens; KINGLET_UNSUPPORTED (ids only, an encoder),
// KINGLET_OUT_OF_MEMORY.
KINGLET_API kinglet_status kinglet_session_text_probability(kinglet_session* session, uint32_t lane,
                                                            const char* prefix, uint64_t length,
                                                            uint64_t most_steps, double* out,
                                                            uint64_t* steps);

// The continuations of a prefix of the text that follows: characters[i] becomes the code point of a
// character that may follow the `length` bytes at `prefix`, or a value of kinglet_next_character,
// and probabilities[i] the probability of the prefix and that continuation. All probabilities add
// up to that of the prefix. KINGLET_NEXT_END stands for a token that spells nothing; a token that
// ends inside a character counts for the character's first byte (KINGLET_NEXT_BYTE). `*steps`, if
// `steps` is not NULL, becomes the number of tokens that were stepped. Arrays, `capacity` and
// `count` as for kinglet_session_next_characters.
// Errors: KINGLET_BUFFER_TOO_SMALL and those of kinglet_session_text_probability.
KINGLET_API kinglet_status kinglet_session_text_next_characters(
    kinglet_session* session, uint32_t lane, const char* prefix, uint64_t length,
    uint64_t most_steps, uint32_t* characters, double* probabilities, uint64_t capacity,
    uint32_t* count, uint64_t* steps);

// The k most probable words with which the text may continue and which begin with the `length`
// bytes at `prefix`, the most probable first; fewer if fewer are found. A word's text includes the
// space before it. A word ends before white space and before a token that spells nothing; its
// probability is that of the word and its end. The search is a beam search: after each token the
// `beam` most probable beginnings are kept (1 to 1,024), until no beginning can lead to one of the
// best words, or after `most_steps` steps. So a word may be missing, and a word that several
// sequences spell may have too low a probability. `buffer`, of `capacity` bytes, gets the words'
// texts, each with a NUL; offsets[i] becomes the byte at which text i begins, and offsets[*count]
// the end of the last one. `offsets` has room for k + 1 elements and `log_probabilities` for k; all
// three may be NULL. `*count` (words), `*needed` (bytes of the texts) and `*steps` (tokens
// stepped), where not NULL, are written also when the call fails with KINGLET_BUFFER_TOO_SMALL.
// Errors: KINGLET_INVALID_ARGUMENT (`beam`), KINGLET_BUFFER_TOO_SMALL, KINGLET_UNSUPPORTED (ids
// only, an encoder), KINGLET_OUT_OF_MEMORY.
KINGLET_API kinglet_status kinglet_session_text_words(
    kinglet_session* session, uint32_t lane, const char* prefix, uint64_t length, uint32_t k,
    uint32_t beam, uint64_t most_steps, char* buffer, uint64_t capacity, uint64_t* needed,
    uint64_t* offsets, double* log_probabilities, uint32_t* count, uint64_t* steps);

// For entropy coders: the integers below 2^32 that belong to token `id`, from *low up to but not
// including *high. The intervals of all tokens, in the order of ids, cover all integers without a
// gap. Each token gets one integer and a part of the others in proportion to its probability
// divided by the sum of all probabilities, but for roundings in the model's own type. Where two
// machines compute the same probabilities, bit for bit, they also compute the same intervals.
// Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_session_interval(kinglet_session* session, uint32_t lane,
                                                    uint32_t id, uint64_t* low, uint64_t* high);

// The id of the token whose interval (kinglet_session_interval) contains the integer `point`.
KINGLET_API kinglet_status kinglet_session_word_at(kinglet_session* session, uint32_t lane,
                                                   uint32_t point, uint32_t* out);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // KINGLET_WORDS_H_
