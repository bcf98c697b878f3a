// Replaces oneDNN in tests that need a library with other properties than the installed one.
#include <fenv.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>

#if defined(KINGLET_ANOTHER_VERSION)
#define MAJOR 4
#else
#define MAJOR 3
#endif
#if defined(KINGLET_OTHER_THREADS)
#define THREADS DNNL_RUNTIME_TBB
#else
#define THREADS DNNL_RUNTIME_SEQ
#endif

// Changes the rounding mode, as libraries that were linked with -ffast-math change the environment.
__attribute__((constructor)) static void ChangeFloatEnvironment(void) { fesetround(FE_UPWARD); }

// Products that succeed before the library runs out of memory; an environment variable may set it.
int kinglet_products_left = 1 << 30;

const dnnl_version_t* dnnl_version(void) {
  const char* const left = getenv("KINGLET_PRODUCTS_LEFT");
  if (left != NULL) kinglet_products_left = atoi(left);
  static const dnnl_version_t version = {MAJOR, 1, 2, "", THREADS, DNNL_RUNTIME_NONE};
  return &version;
}

#if !defined(KINGLET_NO_PRODUCT)
dnnl_status_t dnnl_sgemm(char transa, char transb, dnnl_dim_t M, dnnl_dim_t N, dnnl_dim_t K,
                         float alpha, const float* A, dnnl_dim_t lda, const float* B,
                         dnnl_dim_t ldb, float beta, float* C, dnnl_dim_t ldc) {
  if (transa != 'N' || transb != 'N' || alpha != 1 || beta != 0) return dnnl_unimplemented;
  if (kinglet_products_left == 0) return dnnl_out_of_memory;
  --kinglet_products_left;
  for (dnnl_dim_t m = 0; m < M; ++m) {
    for (dnnl_dim_t n = 0; n < N; ++n) {
      float sum = 0;
      for (dnnl_dim_t k = 0; k < K; ++k) sum += A[m * lda + k] * B[k * ldb + n];
      C[m * ldc + n] = sum;
    }
  }
  return dnnl_success;
}
#endif
