// What c_api_test.c, strict C11, gives to c_api_test.cc.
#ifndef KINGLET_TESTS_RUNTIME_C_API_TEST_H_
#define KINGLET_TESTS_RUNTIME_C_API_TEST_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Uses the whole interface the way a C program would, on a model with words that is these `size`
// bytes. Returns NULL, or the text of the first expectation that did not hold.
const char* UseInterfaceFromC(const void* bytes, uint64_t size);

#ifdef __cplusplus
}
#endif

#endif  // KINGLET_TESTS_RUNTIME_C_API_TEST_H_
