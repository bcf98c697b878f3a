// Functions that see each step of a plan run: for calibration, measuring and tests.
#ifndef KINGLET_RUNTIME_STEP_OBSERVER_H_
#define KINGLET_RUNTIME_STEP_OBSERVER_H_

#include <functional>
#include <span>

namespace kinglet {

struct Step;
struct StreamFrame;

// Called for each step, with the frames of all streams that take it together. On a device the step
// has ended when the function is called, and the frames' memory is not what the step worked on.
// Logits may not be in their buffer (StreamFrame::keeps_logits and logits). Must not throw.
using StepObserver = std::function<void(const Step& step, std::span<const StreamFrame> frames)>;
struct StepObservers {
  StepObserver before, after;  // an empty one is not called
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_STEP_OBSERVER_H_
