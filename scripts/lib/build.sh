# shellcheck shell=bash
# CMake builds, one folder per preset.

# Prints why the CMake cache in folder $1 cannot be used again; nothing when it can or there is none.
cache_defect() {
  local cache=$1/CMakeCache.txt compiler
  if [[ ! -f $cache ]]; then return; fi
  if ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$(pwd -P)" "$cache"; then
    echo "it is from another source folder"
  elif [[ ! -f $1/build.ninja ]]; then
    echo "its configuration was not finished"
  else
    compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[^=]*=//p' "$cache")
    if ! command -v "$compiler" >/dev/null; then echo "its compiler is gone"; fi
  fi
}

# configure PRESET FOLDER OPTION...
configure() {
  local preset=$1 folder=$2
  shift 2
  if [[ -z $(cache_defect "$folder") ]] && run_logged "configure-$preset" cmake --preset "$preset" "$@"; then
    return
  fi
  # The cache may hold what no longer exists, such as a library that moved: once more without it.
  run_logged "configure-$preset" cmake --fresh --preset "$preset" "$@"
}

# build_preset PRESET FOLDER OPTION...: configures and builds.
build_preset() {
  configure "$@" && run_logged "build-$1" cmake --build --preset "$1" --parallel "$jobs"
}

# Warnings are errors with the compiler that the project is developed with; one that another compiler invents must not
# stop a user.
developer_mode() {
  local version
  version=$("${CXX:-c++}" --version 2>/dev/null | head -n 1 || true)
  if [[ $version == *" 12."* && $version != *clang* ]]; then echo ON; else echo OFF; fi
}

# The release build, which everything else needs: stops the run when it fails.
build_release() {
  begin "Release build"
  build_preset release build -DTIDEMARK_DEVELOPER_MODE="$(developer_mode)" "$@" || fail "the release build failed; see $current_log"
  end "build/tidemark"
}
