// Which functions the shared library exports.
#ifndef KINGLET_EXPORT_H_
#define KINGLET_EXPORT_H_

// Marks what the shared library exports; everything else in it is hidden.
#if defined(_WIN32)
#if defined(KINGLET_EXPORTS)
#define KINGLET_API __declspec(dllexport)
#else
#define KINGLET_API
#endif
#elif defined(__GNUC__)
#define KINGLET_API __attribute__((visibility("default")))
#else
#define KINGLET_API
#endif

#endif  // KINGLET_EXPORT_H_
