// The library as it is found, refused, and used in one thread.
#include "kernels/onednn/library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cfenv>
#include <new>
#include <string>
#include <vector>

namespace kinglet::library_test {
namespace {

using onednn::Library;

TEST(OnednnLibrary, IsFoundOnceAndSaysItsVersion) {
  const auto library = Library::Find();
  ASSERT_TRUE(library.ok()) << library.status().message();
  EXPECT_EQ((*library)->name().find("oneDNN "), 0u) << (*library)->name();
  EXPECT_EQ(*Library::Find(), *library);
}

TEST(OnednnLibrary, LeavesTheCallersThreadsAsTheyWere) {
  const auto library = Library::Find();
  ASSERT_TRUE(library.ok());
  // What a host that is linked with g++'s OpenMP calls; the test's compiler may have another one.
  void* const gomp = dlopen("libgomp.so.1", RTLD_NOW);
  ASSERT_NE(gomp, nullptr) << dlerror();
  const auto threads = reinterpret_cast<int (*)()>(dlsym(gomp, "omp_get_max_threads"));
  const auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(gomp, "omp_set_num_threads"));
  ASSERT_TRUE(threads != nullptr && set_threads != nullptr);
  const int before = threads();
  set_threads(3);
  {
    const Library::OneThread one_thread(**library);
    EXPECT_EQ(threads(), 1);
    std::vector<float> x(300 * 40, 1.0f), weight(300 * 50, 1.0f), y(40 * 50);
    (*library)->Multiply(40, 50, 300, x.data(), weight.data(), y.data());
    EXPECT_EQ(y, std::vector<float>(40 * 50, 300.0f));
  }
  EXPECT_EQ(threads(), 3);
  set_threads(before);
  dlclose(gomp);
}

TEST(OnednnLibrary, OneThatCannotBeUsedIsRefusedInOneLine) {
  const struct {
    std::string file, found;
  } cases[] = {{"/no/such/libdnnl.so", "/no/such/libdnnl.so"},
               {KINGLET_ANOTHER_VERSION, "oneDNN 4.1.2"},
               {KINGLET_OTHER_THREADS, "oneDNN 3.1.2"},
               {KINGLET_NO_PRODUCT, "dnnl_sgemm"}};
  for (const auto& [file, found] : cases) {
    const auto library = Library::Load(file);
    ASSERT_FALSE(library.ok()) << file;
    EXPECT_EQ(library.status().code(), KINGLET_UNSUPPORTED);
    const std::string message = library.status().message();
    EXPECT_EQ(message.find("backend: onednn: expected "), 0u) << message;
    EXPECT_NE(message.find("install libdnnl2"), std::string::npos) << message;
    EXPECT_LT(message.find(", found "), message.rfind(found)) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(OnednnLibrary, ItsConstructorsDoNotChangeTheFloatEnvironment) {
  EXPECT_FALSE(Library::Load(KINGLET_ANOTHER_VERSION).ok());
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

TEST(OnednnLibrary, WithoutMemoryThrows) {
  const auto library = Library::Load(KINGLET_FAILING);
  ASSERT_TRUE(library.ok()) << library.status().message();
  EXPECT_EQ(library->name(), "oneDNN 3.1.2");
  void* const same = dlopen(KINGLET_FAILING, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(same, nullptr);
  int& left = *static_cast<int*>(dlsym(same, "kinglet_products_left"));
  const float x[] = {1, 2}, weight[] = {3, 4};
  float y = 0;
  left = 1;
  library->Multiply(1, 1, 2, x, weight, &y);
  EXPECT_EQ(y, 11.0f);
  EXPECT_THROW(library->Multiply(1, 1, 2, x, weight, &y), std::bad_alloc);
  left = 1 << 30;
  dlclose(same);
}

}  // namespace
}  // namespace kinglet::library_test
