#pragma once

// The one place that holds the version; CMake and pyproject.toml read it from here.
#define TIDEMARK_VERSION_MAJOR 0
#define TIDEMARK_VERSION_MINOR 1
#define TIDEMARK_VERSION_PATCH 0
#define TIDEMARK_VERSION "0.1.0"
