#include "kernels/onednn/backend.h"

#include "kernels/cpu/cpu.h"
#include "kernels/onednn/library.h"
#include "kernels/onednn/products.h"

namespace kinglet::onednn {

Result<std::string> LibraryName() {
  KINGLET_ASSIGN_OR_RETURN(const Library* const library, Library::Find());
  return library->name();
}

Result<std::vector<Kernel>> Bind(const Plan& plan, const BufferLayout& layout,
                                 const WeightMemory& memory) {
  KINGLET_ASSIGN_OR_RETURN(const Library* const library, Library::Find());
  KINGLET_ASSIGN_OR_RETURN(const cpu::Target target, cpu::ChosenTarget());
  Products products(*library, memory.claim);
  return cpu::BindWith(cpu::FindVectorFunctions(target), plan, layout, memory, &products);
}

}  // namespace kinglet::onednn
