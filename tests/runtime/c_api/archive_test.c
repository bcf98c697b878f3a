#include <string.h>

#include "tests/runtime/c_api/expect.h"

_Static_assert(offsetof(kinglet_coder_options, threads) == 4, "fixed");
_Static_assert(offsetof(kinglet_coder_options, block_size) == 8, "fixed");
_Static_assert(offsetof(kinglet_coder_options, fast) == 12, "fixed");
_Static_assert(offsetof(kinglet_coder_options, limit) == 16, "fixed");
_Static_assert(offsetof(kinglet_coder_options, salvage) == 24, "fixed");
_Static_assert(sizeof(kinglet_coder_options) == 32, "fixed");

enum { LENGTH = 5000, ROOM = 8000, BLOCK = 1024 };

static kinglet_coder_options Options(uint32_t threads) {
  kinglet_coder_options options;
  kinglet_coder_options_init(&options, sizeof options);
  options.threads = threads;
  options.block_size = BLOCK;
  return options;
}

static uint32_t Random(uint32_t* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 16;
}

// Words of the model, then bytes that are not text.
static void FillText(unsigned char* text) {
  uint32_t state = 7;
  for (size_t i = 0; i < LENGTH; ++i) {
    text[i] = i < LENGTH / 2 ? (unsigned char)"the w3 w4, unheard\n"[i % 19]
                             : (unsigned char)Random(&state);
  }
}

// Passes bytes through a coder in pieces of fewer than `most` bytes, the empty ones too, and takes
// the output in pieces of such sizes.
static const char* Pass(kinglet_coder* coder, const unsigned char* bytes, uint64_t count,
                        uint32_t most, unsigned char* out, uint64_t* length) {
  uint32_t state = most;
  uint64_t added = 0, taken = 1;
  *length = 0;
  for (int finished = 0; !finished || taken > 0;) {
    uint64_t piece = Random(&state) % most;
    if (piece > count - added) piece = count - added;
    if (!finished) EXPECT_OK(kinglet_coder_add(coder, bytes + added, piece));
    added += piece;
    if (!finished && added == count) {
      finished = 1;
      EXPECT_OK(kinglet_coder_finish(coder));
    }
    do {
      uint64_t room = 1 + Random(&state) % most;
      if (room > ROOM - *length) room = ROOM - *length;
      EXPECT_OK(kinglet_coder_take(coder, out + *length, room, &taken));
      *length += taken;
    } while (taken > 0 && Random(&state) % 4 != 0);
  }
  return NULL;
}

const char* TestArchives(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_CACHE);
  unsigned char text[LENGTH], first[ROOM], archive[ROOM], restored[ROOM];
  FillText(text);
  uint64_t size = 0, first_size = 0, length = 0;
  const uint32_t pieces[] = {3, 100, 1500, 2 * LENGTH};
  for (size_t i = 0; i < 4; ++i) {
    const kinglet_coder_options options = Options((uint32_t)i);
    kinglet_coder* coder = NULL;
    EXPECT_OK(kinglet_compressor_create(model, &options, &coder));
    EXPECT_PASSES(Pass(coder, text, LENGTH, pieces[i], archive, &size));
    if (i == 0) {
      memcpy(first, archive, size);
      first_size = size;
    }
    EXPECT(size == first_size && memcmp(archive, first, size) == 0);
    kinglet_coder_destroy(coder);
    EXPECT_OK(kinglet_decompressor_create(model, &options, &coder));
    EXPECT_PASSES(Pass(coder, archive, size, pieces[3 - i], restored, &length));
    EXPECT(length == LENGTH && memcmp(restored, text, LENGTH) == 0);
    char damages[8] = "*";
    EXPECT_OK(kinglet_coder_damages(coder, damages, sizeof damages, NULL));
    EXPECT(damages[0] == '\0');
    kinglet_coder_destroy(coder);
  }

  // The coder keeps its model; an empty text; the default block size; mixing less.
  kinglet_coder_options options = Options(0);
  options.block_size = 0;
  options.fast = 1;
  kinglet_coder* coder = NULL;
  EXPECT_OK(kinglet_compressor_create(model, NULL, &coder));
  EXPECT_PASSES(Pass(coder, NULL, 0, 9, archive, &size));
  EXPECT(size == 44);
  kinglet_coder_destroy(coder);
  EXPECT_OK(kinglet_compressor_create(model, &options, &coder));
  EXPECT_PASSES(Pass(coder, text, LENGTH / 2, 99, archive, &size));
  EXPECT(size < LENGTH / 8);
  kinglet_coder_destroy(coder);
  EXPECT_OK(kinglet_decompressor_create(model, NULL, &coder));
  kinglet_model_close(model);
  EXPECT_PASSES(Pass(coder, archive, size, 99, restored, &length));
  EXPECT(length == LENGTH / 2 && memcmp(restored, text, length) == 0);
  kinglet_coder_destroy(coder);
  kinglet_coder_destroy(NULL);
  return NULL;
}

// Adds an archive, and takes until an error, which is returned.
static kinglet_status Restore(const kinglet_model* model, const kinglet_coder_options* options,
                              const unsigned char* archive, uint64_t size, kinglet_coder** coder) {
  unsigned char room[999];
  uint64_t taken = 1;
  kinglet_status status = kinglet_decompressor_create(model, options, coder);
  if (status == KINGLET_OK) status = kinglet_coder_add(*coder, archive, size);
  if (status == KINGLET_OK) status = kinglet_coder_finish(*coder);
  while (status == KINGLET_OK && taken > 0) {
    status = kinglet_coder_take(*coder, room, sizeof room, &taken);
  }
  return status;
}

const char* TestArchiveErrors(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_CACHE);
  kinglet_coder* coder = NULL;
  kinglet_coder_options options = Options(1);
  EXPECT_INVALID(kinglet_coder_options_init(NULL, sizeof options));
  EXPECT_INVALID(kinglet_compressor_create(NULL, &options, &coder));
  EXPECT_INVALID(kinglet_compressor_create(model, &options, NULL));
  EXPECT_INVALID(kinglet_decompressor_create(NULL, &options, &coder));
  EXPECT_INVALID(kinglet_decompressor_create(model, &options, NULL));
  kinglet_coder_options wrong[5];
  for (size_t i = 0; i < 5; ++i) wrong[i] = options;
  wrong[0].block_size = 1023;
  wrong[1].fast = 2;
  wrong[2].salvage = 2;
  wrong[3].reserved = 1;
  wrong[4].struct_size = 8;
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_INVALID(kinglet_compressor_create(model, &wrong[i], &coder));
    EXPECT(i == 0 || kinglet_decompressor_create(model, &wrong[i], &coder) != KINGLET_OK);
  }
  const enum test_model others[] = {TEST_MODEL_IDS_ONLY, TEST_MODEL_CLASSIFIER,
                                    TEST_MODEL_TRANSLATION, TEST_MODEL_MASKED};
  for (size_t i = 0; i < 4; ++i) {
    kinglet_model* other = OpenTest(others[i]);
    EXPECT(kinglet_compressor_create(other, NULL, &coder) == KINGLET_UNSUPPORTED);
    EXPECT(kinglet_decompressor_create(other, NULL, &coder) == KINGLET_UNSUPPORTED);
    kinglet_model_close(other);
  }
  EXPECT(coder == NULL);

  // Wrong arguments leave the coder as it was.
  unsigned char text[LENGTH], archive[ROOM];
  FillText(text);
  uint64_t count = 9, size = 0;
  EXPECT_OK(kinglet_compressor_create(model, &options, &coder));
  EXPECT_INVALID(kinglet_coder_add(NULL, text, 1));
  EXPECT_INVALID(kinglet_coder_add(coder, NULL, 1));
  EXPECT_INVALID(kinglet_coder_add(coder, text, UINT64_MAX));
  EXPECT_INVALID(kinglet_coder_finish(NULL));
  EXPECT_INVALID(kinglet_coder_take(NULL, archive, 1, &count));
  EXPECT_INVALID(kinglet_coder_take(coder, NULL, 1, &count));
  EXPECT_INVALID(kinglet_coder_take(coder, archive, 0, &count));
  EXPECT_INVALID(kinglet_coder_take(coder, archive, 1, NULL));
  EXPECT_INVALID(kinglet_coder_cancel(NULL));
  EXPECT_INVALID(kinglet_coder_damages(NULL, NULL, 0, &count));
  EXPECT(count == 9);
  EXPECT_PASSES(Pass(coder, text, LENGTH, 700, archive, &size));
  EXPECT_INVALID(kinglet_coder_add(coder, text, 1));  // finished
  EXPECT_OK(kinglet_coder_take(coder, text, 1, &count));
  EXPECT(count == 0);
  kinglet_coder_destroy(coder);

  // A failed coder does nothing more.
  EXPECT(Restore(model, &options, archive, size - 1, &coder) == KINGLET_CORRUPT);
  EXPECT_INVALID(kinglet_coder_take(coder, text, 1, &count));
  EXPECT_INVALID(kinglet_coder_add(coder, text, 1));
  EXPECT_INVALID(kinglet_coder_finish(coder));
  kinglet_coder_destroy(coder);
  options.limit = LENGTH - 1;
  EXPECT_INVALID(Restore(model, &options, archive, size, &coder));
  kinglet_coder_destroy(coder);
  options.limit = LENGTH;
  EXPECT_OK(Restore(model, &options, archive, size, &coder));
  EXPECT_OK(kinglet_coder_cancel(coder));
  EXPECT(kinglet_coder_take(coder, text, 1, &count) == KINGLET_CANCELLED);
  kinglet_coder_destroy(coder);
  kinglet_model* other = OpenTest(TEST_MODEL_OTHER);
  char digest[40];
  EXPECT_OK(kinglet_model_digest(model, digest, sizeof digest, NULL));
  EXPECT(Restore(other, NULL, archive, size, &coder) == KINGLET_MISMATCH);
  EXPECT(strstr(kinglet_error_message(), digest) != NULL);
  kinglet_coder_destroy(coder);
  kinglet_model_close(other);

  // Another version, no archive, a flipped bit in the second block.
  archive[2] = '2';
  EXPECT(Restore(model, NULL, archive, size, &coder) == KINGLET_UNSUPPORTED_VERSION);
  kinglet_coder_destroy(coder);
  archive[2] = '1';
  EXPECT(Restore(model, NULL, text, LENGTH, &coder) == KINGLET_CORRUPT);
  kinglet_coder_destroy(coder);
  archive[size - 1100] ^= 1;
  options.salvage = 1;
  EXPECT(Restore(model, NULL, archive, size, &coder) == KINGLET_CORRUPT);
  kinglet_coder_destroy(coder);
  EXPECT_OK(Restore(model, &options, archive, size, &coder));
  char damages[300];
  EXPECT_OK(kinglet_coder_damages(coder, damages, sizeof damages, &count));
  EXPECT(count == strlen(damages) + 1 && strstr(damages, "block 4 ") != NULL);
  EXPECT(strchr(damages, '\n') == damages + count - 2);
  EXPECT(kinglet_coder_damages(coder, damages, 9, NULL) == KINGLET_BUFFER_TOO_SMALL);
  kinglet_coder_destroy(coder);
  kinglet_model_close(model);
  return NULL;
}
