#include "kernels/onednn/library.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <new>

#include "kernels/float_environment.h"

namespace kinglet::onednn {
namespace {

// The names of oneDNN's library, newest first.
constexpr std::array kSystemFiles = {"libdnnl.so.3", "libdnnl.so.2"};
constexpr int kLeastMajor = 2, kMostMajor = 3;

Status Refuse(const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_UNSUPPORTED, "backend", "onednn",
                         expected +
                             " (install libdnnl2 or pip's onednn-cpu-gomp; the environment "
                             "variable KINGLET_ONEDNN may name the file)",
                         found);
}

struct Close {
  void operator()(void* handle) const { dlclose(handle); }
};
using Handle = std::unique_ptr<void, Close>;

// A function of the library, or of the libraries that it needs. Null if there is no such function.
template <class Function>
Function FindFunction(const Handle& handle, const char* name) {
  return reinterpret_cast<Function>(dlsym(handle.get(), name));
}

// Loads the newest library that the system has. If all fail, the error is that of the newest.
Result<Library> LoadNewest() {
  Status none;
  for (const char* const file : kSystemFiles) {
    Result<Library> library = Library::Load(file);
    if (library.ok()) return library;
    if (none.ok()) none = library.status();
  }
  return none;
}

}  // namespace

Result<Library> Library::Load(const std::string& file) {
  Handle handle;
  {
    const FloatEnvironment kept;  // restores it if the library's constructors change it
    handle.reset(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL));
  }
  if (handle == nullptr) {
    const char* const reason = dlerror();
    return Refuse("the library oneDNN", reason != nullptr ? reason : "no " + file);
  }
  const auto version = FindFunction<decltype(&dnnl_version)>(handle, "dnnl_version");
  Library library;
  library.product_ = FindFunction<decltype(&dnnl_sgemm)>(handle, "dnnl_sgemm");
  if (version == nullptr || library.product_ == nullptr) {
    return Refuse("the library oneDNN", file + " without dnnl_version or dnnl_sgemm");
  }
  const dnnl_version_t& is = *version();
  library.name_ = "oneDNN " + std::to_string(is.major) + "." + std::to_string(is.minor) + "." +
                  std::to_string(is.patch);
  if (is.major < kLeastMajor || is.major > kMostMajor) {
    return Refuse(
        "oneDNN " + std::to_string(kLeastMajor) + ".x or " + std::to_string(kMostMajor) + ".x",
        library.name_ + " in " + file);
  }
  if (is.cpu_runtime == DNNL_RUNTIME_OMP) {
    library.threads_ = FindFunction<int (*)()>(handle, "omp_get_max_threads");
    library.set_threads_ = FindFunction<void (*)(int)>(handle, "omp_set_num_threads");
  }
  const bool is_limited = library.threads_ != nullptr && library.set_threads_ != nullptr;
  if (!is_limited && is.cpu_runtime != DNNL_RUNTIME_SEQ) {
    return Refuse("oneDNN with OpenMP threads or without threads",
                  library.name_ + " with other threads in " + file);
  }
  // The library stays loaded for as long as the program runs.
  static_cast<void>(handle.release());
  return library;
}

Result<const Library*> Library::Find() {
  static const Result<Library> library = [] {
    const char* const file = secure_getenv("KINGLET_ONEDNN");
    return file != nullptr && *file != '\0' ? Load(file) : LoadNewest();
  }();
  KINGLET_RETURN_IF_ERROR(library.status());
  return &*library;
}

void Library::Multiply(size_t vectors, size_t rows, size_t cols, const float* x,
                       const float* weight, float* y) const {
  const auto m = static_cast<dnnl_dim_t>(vectors), n = static_cast<dnnl_dim_t>(rows),
             k = static_cast<dnnl_dim_t>(cols);
  if (product_('N', 'N', m, n, k, 1.0f, x, k, weight, n, 0.0f, y, n) != dnnl_success) {
    throw std::bad_alloc();
  }
}

}  // namespace kinglet::onednn
