// A file of its own: it takes the place of libstdc++'s member in libmccrt.a, in programs with another main() too.
#include <cstdlib>
#include <exception>

/// What std::terminate calls. libstdc++'s own brings its demangler, 40 KB, into every executable, to name an exception
/// that nobody catches; main catches all.
namespace __cxxabiv1 {
std::terminate_handler __terminate_handler = std::abort;
} // namespace __cxxabiv1
