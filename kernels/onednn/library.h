// oneDNN, loaded when the backend `onednn` is first asked for: nothing else needs the library, and
// a build with this backend runs without it. The functions that are called are the same in 2.x and
// 3.x.
#ifndef KINGLET_KERNELS_ONEDNN_LIBRARY_H_
#define KINGLET_KERNELS_ONEDNN_LIBRARY_H_

#include <oneapi/dnnl/dnnl.h>

#include <cstddef>
#include <string>

#include "kinglet/status.h"

namespace kinglet::onednn {

class Library {
 public:
  // The library at the path in the environment variable KINGLET_ONEDNN, or else the newest one that
  // the system finds. The first call loads the library, which stays loaded. Errors: those of Load.
  static Result<const Library*> Find();
  // KINGLET_UNSUPPORTED, with what to install, if the library does not exist, is not oneDNN or has
  // another version, or if nothing could keep it from starting threads.
  static Result<Library> Load(const std::string& file);

  const std::string& name() const { return name_; }  // "oneDNN 2.6.3"

  // While a OneThread lives, the library uses the calling thread and no other. The destructor
  // restores the caller's own setting of OpenMP.
  class OneThread {
   public:
    explicit OneThread(const Library& library) : library_(&library) {
      if (library.threads_ == nullptr) return;
      threads_ = library.threads_();
      library.set_threads_(1);
    }
    ~OneThread() {
      if (library_->threads_ != nullptr) library_->set_threads_(threads_);
    }
    OneThread(const OneThread&) = delete;
    OneThread& operator=(const OneThread&) = delete;

   private:
    const Library* library_;
    int threads_ = 1;
  };

  // y [vectors, rows] = x [vectors, cols] * weight [cols, rows]. Always exact float32: the
  // library's mode of less exact products does not affect this function. REQUIRES: a OneThread;
  // sizes above 0. Throws std::bad_alloc, since the library fails only for want of memory.
  void Multiply(size_t vectors, size_t rows, size_t cols, const float* x, const float* weight,
                float* y) const;

 private:
  Library() = default;

  std::string name_;
  decltype(&dnnl_sgemm) product_ = nullptr;
  // Functions of the OpenMP that the library uses; null if the library starts no threads.
  int (*threads_)() = nullptr;
  void (*set_threads_)(int) = nullptr;
};

}  // namespace kinglet::onednn

#endif  // KINGLET_KERNELS_ONEDNN_LIBRARY_H_
