// The sparsities of MicroNet's published networks, tensor by tensor: mit-han-lab/neurips-micronet,
// commit a85bd0e.
#ifndef KINGLET_TESTS_SYNTHESIS_PUBLISHED_SPARSITIES_H_
#define KINGLET_TESTS_SYNTHESIS_PUBLISHED_SPARSITIES_H_

#include "tests/synthesis/synthesis.h"

namespace kinglet {

// The targets in the pruner's configuration. The paper names its three levels by the fraction of
// zeros in the entire network after training.
enum class PrunerLevel { k0239, k0358, k0477 };
Sparsities PrunerTargets(PrunerLevel level);

// The sparsities that the notebooks of the challenge's submissions print. REQUIRES: 1 <=
// submission <= 3.
Sparsities SubmissionSparsities(int submission);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SYNTHESIS_PUBLISHED_SPARSITIES_H_
