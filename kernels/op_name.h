// What an operation is called: the name of its struct in kernels/op.h.
#ifndef KINGLET_KERNELS_OP_NAME_H_
#define KINGLET_KERNELS_OP_NAME_H_

#include <string_view>

#include "kernels/op.h"

namespace kinglet {

std::string_view OpName(const Op& op);

}  // namespace kinglet

#endif  // KINGLET_KERNELS_OP_NAME_H_
