# What the library itself needs, all from Debian packages; found once, for every folder below.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(zstd REQUIRED)
find_path(TIDEMARK_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
