// A device that answers at once: copies are copies of the host's memory, and no node runs but those
// that answer queries, whose answers are made up. What a session on it takes is the work of the
// host.
#ifndef KINGLET_TESTS_SUPPORT_INSTANT_DEVICE_H_
#define KINGLET_TESTS_SUPPORT_INSTANT_DEVICE_H_

#include <cstdint>

#include "kernels/backend.h"

namespace kinglet {

struct InstantDevice {
  // The tails that every third lane asks for when its head has been ranked, a bit each.
  uint64_t tails = 0;
  // Calls so far.
  uint64_t uploads = 0, waits = 0;
};

// For ModelOptions::own_backend. `device` outlives models and sessions that use the backend.
Backend InstantBackend(InstantDevice& device);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_INSTANT_DEVICE_H_
