# Compile settings shared by every target of the project; no global flags, so a parent project is left alone.

add_library(tidemark_settings INTERFACE)
target_compile_features(tidemark_settings INTERFACE cxx_std_20)
if(TIDEMARK_DEVELOPER_MODE)
  target_compile_options(tidemark_settings INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual -Woverloaded-virtual
    -Wextra-semi -Werror
    # g++ 12 sees overlapping copies in std::string::insert where there are none (GCC bug 105651).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
endif()
if(TIDEMARK_SANITIZE)
  target_compile_options(tidemark_settings INTERFACE
    -fsanitize=${TIDEMARK_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    # Instrumented code makes g++ 12 doubt values that are initialised, in std::regex for one.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(tidemark_settings INTERFACE -fsanitize=${TIDEMARK_SANITIZE})
endif()
if(TIDEMARK_COVERAGE)
  target_compile_options(tidemark_settings INTERFACE -fprofile-instr-generate -fcoverage-mapping)
  target_link_options(tidemark_settings INTERFACE -fprofile-instr-generate)
endif()

# Settings apply while the project itself builds; an installed copy carries none of them.
function(tidemark_use_settings target)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:tidemark_settings>)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()

# tidemark_precompile(TARGET HEADER...): the common headers of the standard library and these are parsed once for the
# whole target. ./test leaves this out of the release build, where each file must include what it uses.
function(tidemark_precompile target)
  if(TIDEMARK_PRECOMPILE_HEADERS)
    target_precompile_headers(${target} PRIVATE
      <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <limits> <map> <memory> <optional> <set> <span>
      <string> <string_view> <unordered_map> <utility> <variant> <vector> ${ARGN})
  endif()
endfunction()
