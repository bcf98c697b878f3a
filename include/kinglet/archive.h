// Archives of any bytes, as `kinglet compress` makes them: a part of kinglet.h, which includes this
// file and whose rules apply here. docs/COMPRESS.md documents the format.
#ifndef KINGLET_ARCHIVE_H_
#define KINGLET_ARCHIVE_H_

#include <stdint.h>

#include "kinglet/export.h"
#include "kinglet/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kinglet_model kinglet_model;

// Makes an archive of a text, which is any bytes, or restores the text of one. A coder takes bytes
// in pieces of any size and gives bytes in pieces of any size:
//
//   uint64_t n;
//   kinglet_compressor_create(model, NULL, &coder);
//   while ((n = fread(piece, 1, sizeof piece, in)) > 0) {
//     kinglet_coder_add(coder, piece, n);
//     while (kinglet_coder_take(coder, room, sizeof room, &n) == KINGLET_OK && n > 0) {
//       fwrite(room, 1, n, out);
//     }
//   }
//   kinglet_coder_finish(coder);  // and take the rest
//
// The results depend on neither the sizes of the pieces nor the number of threads nor the machine.
// One thread at a time may use a coder, except for kinglet_coder_cancel.
//
// A caller that takes all bytes after each addition bounds a coder's memory: for each thread a
// session of the model, four times the block size, and up to 140 MB while a block is coded (36 MB
// for a block of 100 kB). Sessions and the latter count towards the model's memory limit.
typedef struct kinglet_coder kinglet_coder;

// How to code. 0 in a field means its default. A longer structure is accepted as for
// kinglet_model_options.
typedef struct kinglet_coder_options {
  uint32_t struct_size;  // set by kinglet_coder_options_init
  uint32_t threads;      // number of blocks coded at the same time, 1 to 1,024; 0 means 1
  // To make an archive.
  uint32_t block_size;  // bytes of text in an independent block, 1,024 to 2^26; 0 means 2^20
  uint32_t fast;        // 1: mixes less, which is faster and a little larger
  // To restore one.
  uint64_t limit;     // the most bytes of text, checked before a block is restored; 0: no limit
  uint32_t salvage;   // 1: omits damaged blocks, which kinglet_coder_damages names
  uint32_t reserved;  // zero
} kinglet_coder_options;

// Sets every field of `options` to its default. `struct_size` is sizeof(kinglet_coder_options).
// Errors: KINGLET_INVALID_ARGUMENT (a size that no version of the structure has).
KINGLET_API kinglet_status kinglet_coder_options_init(kinglet_coder_options* options,
                                                      uint32_t struct_size);

// Creates a coder that makes an archive, which only the same model restores. `options` may be NULL.
// On success the caller owns *out and destroys it with kinglet_coder_destroy. The model may be
// closed before the coder is destroyed.
// Errors: KINGLET_INVALID_ARGUMENT (invalid options), KINGLET_UNSUPPORTED (a model of ids only, one
// that does not predict the next token, a backend other than "cpu" and "ref"),
// KINGLET_OUT_OF_MEMORY.
KINGLET_API kinglet_status kinglet_compressor_create(const kinglet_model* model,
                                                     const kinglet_coder_options* options,
                                                     kinglet_coder** out);

// Creates a coder that restores the text of an archive. Otherwise as kinglet_compressor_create.
KINGLET_API kinglet_status kinglet_decompressor_create(const kinglet_model* model,
                                                       const kinglet_coder_options* options,
                                                       kinglet_coder** out);

// Destroys the handle.
KINGLET_API void kinglet_coder_destroy(kinglet_coder* coder);

// Adds the next `count` bytes of the input, which are copied. `bytes` may be NULL if `count` is 0.
// Errors: KINGLET_INVALID_ARGUMENT (a coder that was finished or failed), KINGLET_OUT_OF_MEMORY.
KINGLET_API kinglet_status kinglet_coder_add(kinglet_coder* coder, const void* bytes,
                                             uint64_t count);

// Declares that no bytes follow. Errors: KINGLET_INVALID_ARGUMENT (a coder that failed).
KINGLET_API kinglet_status kinglet_coder_finish(kinglet_coder* coder);

// Computes, and writes the next bytes of the output to `buffer`, which has room for `capacity`
// bytes, 1 or more. *count becomes their number; 0 means that more input is needed or, after
// kinglet_coder_finish, that the output is complete. No byte of a restored text is wrong, but until
// it is complete, bytes at its end may be missing. After an error the coder has failed: it can only
// be destroyed, and what kinglet_coder_take gave before is not the complete output.
// Errors: KINGLET_INVALID_ARGUMENT (a coder that failed; a text above the limit), KINGLET_CORRUPT
// (an archive that is damaged or not complete; the text names the block),
// KINGLET_UNSUPPORTED_VERSION, KINGLET_MISMATCH (an archive of another model, whose digest the text
// has), KINGLET_OUT_OF_MEMORY, KINGLET_CANCELLED.
KINGLET_API kinglet_status kinglet_coder_take(kinglet_coder* coder, void* buffer, uint64_t capacity,
                                              uint64_t* count);

// Makes the running kinglet_coder_take, or else the next one, return KINGLET_CANCELLED within a
// few milliseconds of computing. Any thread may call this function while the coder lives.
KINGLET_API kinglet_status kinglet_coder_cancel(kinglet_coder* coder);

// The damages that a coder with `salvage` has met, a line for each range of blocks that the text
// lacks; empty if there are none. `buffer`, `capacity` and `needed` as for
// kinglet_model_token_text. Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_coder_damages(const kinglet_coder* coder, char* buffer,
                                                 uint64_t capacity, uint64_t* needed);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // KINGLET_ARCHIVE_H_
