// Visits of std::variant that name every alternative:
//
//   std::visit(Overloaded{[](const DenseView& view) { ... }, [](const PackedView& view) { ... },
//                         [](const CodedView& view) { ... }},
//              tensor.values);
//
// A new alternative does not compile until every visit handles it, so no visit has a generic case.
// A case for several alternatives names them:
//
//   []<OneOf<DenseView, CodedView> View>(const View&) { ... }
#ifndef KINGLET_FORMAT_OVERLOADED_H_
#define KINGLET_FORMAT_OVERLOADED_H_

#include <concepts>

namespace kinglet {

template <class T, class... Alternatives>
concept OneOf = (std::same_as<T, Alternatives> || ...);

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace kinglet

#endif  // KINGLET_FORMAT_OVERLOADED_H_
