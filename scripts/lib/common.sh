# shellcheck shell=bash
# Shared by ./quickstart and ./test: a known environment, short output, logs, the lock.
# Sourced with the project's root as current folder.

# Only Debian's own tools: a newer cmake or python3 earlier on the caller's PATH must not decide what is built, and
# CMake would look for libraries beside every folder of PATH. TIDEMARK_SETUP_PATH goes first, for tests and odd systems.
export PATH="${TIDEMARK_SETUP_PATH:+$TIDEMARK_SETUP_PATH:}/usr/bin:/bin:/usr/sbin:/sbin"
export LC_ALL=C.UTF-8
# Settings that would make pip or Python look past .venv, and one that only ./test --accept may set.
unset PYTHONHOME PYTHONPATH PIP_TARGET PIP_PREFIX PIP_ROOT TIDEMARK_ACCEPT
export PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

jobs=$(nproc)
export CMAKE_BUILD_PARALLEL_LEVEL=$jobs

logs=build/logs
open_phase=      # label of the phase whose line is not finished yet
phase_start=0    # in tenths of a second
current_log=     # log of the running or last command

red='' plain=''
if [[ -t 2 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
  red=$'\e[31m' plain=$'\e[0m'
fi

tenths() {
  local now=${EPOCHREALTIME//[.,]/}
  echo "${now:0:-5}"
}

# begin LABEL ... end NOTE: one line of output per phase, with its time.
begin() {
  open_phase=$1
  phase_start=$(tenths)
  current_log=
  printf '%-36s' "$1"
}

end() {
  local took=$(($(tenths) - phase_start))
  printf '%-30s %6d.%d s\n' "${1:-done}" $((took / 10)) $((took % 10))
  open_phase=
}

# A line between the begin and end of a phase; the phase's label is not repeated.
note() {
  if [[ -n $open_phase ]]; then echo; fi
  printf '%s\n' "$1"
  if [[ -n $open_phase ]]; then printf '%-36s' "$open_phase"; fi
}

# run_logged NAME COMMAND...: output goes to build/logs/NAME.log only.
run_logged() {
  current_log=$logs/$1.log
  shift
  printf '$ %s\n' "$*" >"$current_log"
  "$@" >>"$current_log" 2>&1
}

show_log_end() {
  if [[ -s $current_log ]]; then
    printf -- '--- last lines of %s\n' "$current_log"
    # Without ctest's lines about tests that passed: those that failed are wanted.
    grep -vE '^ +Start +[0-9]+: |\.\.+ +Passed ' "$current_log" | tail -n 60 || true
    printf -- '---\n'
  fi
}

fail() {
  if [[ -n $open_phase ]]; then echo "failed"; fi
  open_phase=
  show_log_end >&2
  printf '%serror:%s %s\n' "$red" "$plain" "$1" >&2
  exit 1
}

usage_error() {
  printf '%serror:%s %s; see ./%s --help\n' "$red" "$plain" "$1" "$(basename "$0")" >&2
  exit 2
}

# Every step below can be repeated after it was cut short, so an interrupt only has to be said.
interrupted() {
  echo
  echo "interrupted; the next run picks up from here" >&2
  trap - "$1"
  kill -s "$1" $$
}

# Two runs at once would build in the same folders: the second waits. A run started by a run (a test that calls
# ./quickstart) is covered by the lock its parent holds.
start_run() {
  trap 'interrupted INT' INT
  trap 'interrupted TERM' TERM
  mkdir -p $logs 2>/dev/null || true
  if [[ ! -w . || ! -w build || ! -w $logs ]]; then
    fail "$(id -un) cannot write to $PWD/build; run as the user who owns it, or clone the project again"
  fi
  if [[ ${TIDEMARK_LOCKED_BY_PARENT:-} == "$PWD" ]]; then return; fi
  exec 9>build/.lock
  if ! flock -n 9; then
    echo "waiting for another run in this folder to end"
    flock 9
  fi
  export TIDEMARK_LOCKED_BY_PARENT=$PWD
}

# Options that both commands take. Sets `taken` to the number of arguments used, 0 when it is not one of them.
parse_index_option() {
  taken=1
  local name=${1%%=*} value=
  case $name in
    --index-url | --extra-index-url | --find-links) ;;
    *)
      taken=0
      return
      ;;
  esac
  if [[ $1 == *=* ]]; then
    value=${1#*=}
  elif (($# > 1)); then
    value=$2
    taken=2
  fi
  if [[ -z $value ]]; then usage_error "$name needs a value"; fi
  case $name in
    --index-url) export TIDEMARK_PIP_INDEX_URL=$value ;;
    --extra-index-url) export TIDEMARK_PIP_EXTRA_INDEX_URL=$value ;;
    --find-links)
      # A folder is meant from where the caller stands; pip runs in the project's root.
      if [[ -d $caller_folder/$value ]]; then value=$caller_folder/$value; fi
      export TIDEMARK_PIP_FIND_LINKS=$value
      ;;
  esac
}
