# shellcheck shell=bash
# The test stages of ./test. Each runs to its end and notes a failure; summarize() reports and sets the exit code.

failed=()            # one sentence per failed stage
summaries=()         # logs that end with a runner's own summary, in the order to show them

# stage LABEL LOG COMMAND...
stage() {
  local label=$1 log=$2
  shift 2
  begin "$label"
  if run_logged "$log" "$@"; then
    end "passed"
    return
  fi
  end "FAILED"
  show_log_end
  failed+=("$label (full output: $current_log)")
}

# stage_ctest LABEL PRESET OPTION...
stage_ctest() {
  local label=$1 preset=$2
  shift 2
  summaries+=("$logs/ctest-$preset.log")
  stage "$label" "ctest-$preset" ctest --preset "$preset" --parallel "$jobs" --no-tests=error "$@"
}

# stage_build LABEL PRESET [BUILD_PRESET]: false when it failed.
stage_build() {
  begin "$1"
  if configure "$2" "build/$2" && run_logged "build-$2" cmake --build --preset "${3:-$2}" --parallel "$jobs"; then
    end "built"
    return
  fi
  end "FAILED"
  show_log_end
  failed+=("$1 (full output: $current_log)")
  return 1
}

# Only what runs there: instrumented programs take long to build.
stage_sanitizers() {
  if stage_build "Sanitizer build" asan hostile; then
    stage_ctest "Sanitizer tests, hostile inputs" asan -L '^hostile$'
  fi
}

# A second compiler, unoptimised: the fast tests there also show that both write the same bytes.
stage_clang() {
  if stage_build "clang build" clang; then
    stage_ctest "clang tests, fast ones" clang -L '^fast$'
  fi
}

own_sources() {
  find . \( -name '.?*' -o -path ./build -o -path ./dist \) -prune -o -name "$1" -type f -print0
}

check_format() {
  { own_sources '*.h' && own_sources '*.cpp'; } | xargs -0 clang-format-16 --dry-run -Werror
}

check_tidy() {
  find tidemark -name '*.cpp' -print0 |
    xargs -0 -P "$jobs" -n 1 clang-tidy-16 -p build/tidy --quiet --warnings-as-errors='*'
}

stage_lint() {
  stage "clang-format" clang-format check_format
  # Compile commands of their own: those of the clang build name precompiled headers, which take clang-tidy longer.
  if configure tidy build/tidy; then
    stage "clang-tidy" clang-tidy check_tidy
  else
    failed+=("clang-tidy (not run: no compile commands; full output: $current_log)")
  fi
}

# A process for each core, each with one thread; the tests of a file stay together and share what they set up.
stage_pytest() {
  summaries+=("$logs/pytest.log")
  OMP_NUM_THREADS=1 stage "Python, command line, script tests" pytest \
    .venv/bin/pytest --color=no -rfEs --numprocesses="$jobs" --dist=loadfile "$@"
}

# A runner's own summary, from the end of its log.
summary_of() {
  case $1 in
    */pytest.log) if ! sed -n '/^=* short test summary info/,$p' "$1" | grep .; then tail -n 1 "$1"; fi ;;
    *) if ! sed -n '/% tests passed/,$p' "$1" | grep .; then tail -n 1 "$1"; fi ;;
  esac
}

summarize() {
  echo
  if ((${#failed[@]} > 0)); then
    printf 'FAILED: %s\n' "${failed[@]}"
  else
    echo "All stages passed."
  fi
  local log
  for log in "${summaries[@]}"; do
    printf '\n%s:\n' "$(basename "$log" .log)"
    summary_of "$log"
  done
  if ((${#failed[@]} > 0)); then exit 1; fi
}
