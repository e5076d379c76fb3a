// Boost.JSON's own source, compiled once for the whole project: Debian has it without a library.
#include <boost/json/src.hpp>
