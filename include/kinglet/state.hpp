// The saved state of a stream, as a value: a part of kinglet.hpp, which includes this file.
#ifndef KINGLET_STATE_HPP_
#define KINGLET_STATE_HPP_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kinglet/kinglet.h"
#include "kinglet/model.hpp"
#include "kinglet/status.h"

namespace kinglet {
inline namespace api {

// Everything that a stream remembers. Copies share one immutable state, which any number of threads
// may use at the same time. kinglet.h documents kinglet_state.
class State {
 public:
  static Result<State> Read(const Model& model, const void* bytes, size_t size) {
    kinglet_state* state = nullptr;
    const kinglet_status status = kinglet_state_read(model.get(), bytes, size, &state);
    return ResultOf(status, State(state));
  }
  // Takes ownership of the handle.
  explicit State(kinglet_state* state) : state_(state, kinglet_state_destroy) {}

  Result<uint64_t> Position() const {
    uint64_t position = 0;
    const kinglet_status status = kinglet_state_position(get(), &position);
    return ResultOf(status, position);
  }
  Result<uint64_t> Hash() const {
    uint64_t hash = 0;
    const kinglet_status status = kinglet_state_hash(get(), &hash);
    return ResultOf(status, hash);
  }
  Result<uint64_t> Bytes() const {
    uint64_t bytes = 0;
    const kinglet_status status = kinglet_state_bytes(get(), &bytes);
    return ResultOf(status, bytes);
  }
  Result<std::vector<unsigned char>> Write() const {
    uint64_t size = 0;
    if (const kinglet_status status = kinglet_state_bytes(get(), &size); status != KINGLET_OK) {
      return StatusOf(status);
    }
    std::vector<unsigned char> bytes(static_cast<size_t>(size));
    const kinglet_status status = kinglet_state_write(get(), bytes.data(), size, nullptr);
    return ResultOf(status, std::move(bytes));
  }

  // A state that was moved from equals only another such state.
  friend bool operator==(const State& a, const State& b) {
    int32_t equal = 0;
    if (a.get() == b.get()) return true;
    return kinglet_state_equal(a.get(), b.get(), &equal) == KINGLET_OK && equal != 0;
  }
  friend bool operator!=(const State& a, const State& b) { return !(a == b); }

  // The C handle, which this object and its copies still own.
  const kinglet_state* get() const { return state_.get(); }

 private:
  std::shared_ptr<kinglet_state> state_;
};

}  // namespace api
}  // namespace kinglet

#endif  // KINGLET_STATE_HPP_
