# Every outside library, found once. All come from Debian packages: tools/dev.d/packages.list.
#
# Targets to link with:
#   PkgConfig::LIBBPF PkgConfig::LIBXDP PkgConfig::LIBURING PkgConfig::LIBENET PkgConfig::LIBPCAP
#   PkgConfig::LIBMNL
#   Boost::headers CLI11::CLI11 tomlplusplus::tomlplusplus fmt::fmt spdlog::spdlog
#   GTest::gtest GTest::gtest_main GTest::gmock benchmark::benchmark Threads::Threads

find_package(PkgConfig REQUIRED)
pkg_check_modules(LIBBPF REQUIRED IMPORTED_TARGET libbpf>=1.1)
pkg_check_modules(LIBXDP REQUIRED IMPORTED_TARGET libxdp>=1.3)
pkg_check_modules(LIBURING REQUIRED IMPORTED_TARGET liburing>=2.3)
pkg_check_modules(LIBENET REQUIRED IMPORTED_TARGET libenet>=1.3)
pkg_check_modules(LIBPCAP REQUIRED IMPORTED_TARGET libpcap>=1.10)
pkg_check_modules(LIBMNL REQUIRED IMPORTED_TARGET libmnl>=1.0.4)

find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
