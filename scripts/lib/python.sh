# shellcheck shell=bash
# The project's .venv, the pinned Python tools in it, torch, and the tidemark package itself.
#
# Notes about .venv are kept in .venv/.tidemark/:
#   complete    written last when .venv is made; what it was made from. Without it .venv is a leftover.
#   installing  there while pip changes .venv; names pip's log. Still there later: pip was cut short.
#   torch       the torch version that was seen to work
#   package     hash of everything the installed tidemark package was built from

base_python=${TIDEMARK_PYTHON:-/usr/bin/python3}
venv_python=.venv/bin/python
venv_notes=.venv/.tidemark

venv_identity() {
  "$base_python" -c 'import sys; print(sys.executable, *sys.version_info[:2], end=" ")'
  pwd -P
}

# What keeps .venv from being used as it is; nothing when it is fine.
venv_defect() {
  if [[ ! -f $venv_notes/complete ]]; then
    echo "was incomplete"
  elif [[ $(<$venv_notes/complete) != "$(venv_identity)" ]]; then
    echo "was made by another Python or elsewhere"
  elif ! "$venv_python" -c '' 2>/dev/null; then
    echo "did not run"
  elif [[ -f $venv_notes/installing ]]; then
    # Cut short while downloading is harmless. Cut short later may have left half a package, which pip cannot repair.
    local log
    log=$(<$venv_notes/installing)
    if [[ ! -f $log ]] || grep -q '^Installing collected packages' "$log"; then
      echo "was cut short while installing"
    fi
  fi
}

ensure_venv() {
  begin "Python environment"
  "$base_python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null ||
    fail "$base_python is not a working Python 3.10 or newer; set TIDEMARK_PYTHON to one that is"
  local defect=
  if [[ -e .venv || -L .venv ]]; then
    defect=$(venv_defect)
    if [[ -z $defect ]]; then
      rm -f $venv_notes/installing
      end ".venv is ready"
      return
    fi
    rm -f $venv_notes/complete # first, so that half a removal is a leftover too
    rm -rf .venv || fail "the leftover .venv could not be removed; remove it by hand"
  fi
  run_logged venv "$base_python" -m venv .venv ||
    fail "the folder .venv could not be made with $base_python; see $logs/venv.log"
  mkdir $venv_notes
  venv_identity >$venv_notes/complete.new
  mv $venv_notes/complete.new $venv_notes/complete
  end "${defect:+remade: it $defect}"
}

# Where pip looks, beyond its own configuration (which stays in force).
pip_sources() {
  if [[ -n ${TIDEMARK_PIP_INDEX_URL:-} ]]; then printf '%s\n' --index-url "$TIDEMARK_PIP_INDEX_URL"; fi
  if [[ -n ${TIDEMARK_PIP_EXTRA_INDEX_URL:-} ]]; then printf '%s\n' --extra-index-url "$TIDEMARK_PIP_EXTRA_INDEX_URL"; fi
  if [[ -n ${TIDEMARK_PIP_FIND_LINKS:-} ]]; then printf '%s\n' --find-links "$TIDEMARK_PIP_FIND_LINKS"; fi
}

# pip_install LOG ARGUMENT...: installs into .venv, with the note that makes an interruption visible to the next run.
pip_install() {
  local log=$1 sources
  shift
  mapfile -t sources < <(pip_sources)
  echo "$logs/$log.log" >$venv_notes/installing
  run_logged "$log" "$venv_python" -m pip install "${sources[@]}" "$@" || return
  rm $venv_notes/installing
}

pins_missing() {
  local missing
  missing=$("$venv_python" scripts/lib/missing_pins.py "$@") ||
    fail "the installed Python packages cannot be listed; remove .venv and run this again"
  [[ -n $missing ]]
}

advice_pip="check the network and the free disk space, or choose another package index with --index-url URL"

ensure_build_tools() {
  begin "Python build tools"
  if ! pins_missing scripts/requirements-build.txt; then
    end "nothing missing"
    return
  fi
  pip_install pip-build -r scripts/requirements-build.txt ||
    fail "the Python build tools could not be installed; $advice_pip"
  end "installed"
}

# Says how much a pip installation would fetch, if that is a lot. pip reads the dependencies of each file by range
# requests (fast-deps) where the index offers no metadata; without that it would download every file just to resolve.
announce_download() {
  local report=$logs/pip-report.json sources
  mapfile -t sources < <(pip_sources)
  rm -f "$report"
  run_logged pip-resolve "$venv_python" -m pip install "${sources[@]}" --dry-run --use-feature=fast-deps \
    --report "$report" "$@" || fail "pip found no way to install: $*; $advice_pip"
  local message
  message=$("$venv_python" scripts/lib/download_size.py "$report" --notice-mb "${TIDEMARK_DOWNLOAD_NOTICE_MB:-50}")
  if [[ -n $message ]]; then note "$message"; fi
}

# The torch version this Python imports, nothing when it does not.
torch_of() {
  "$1" -c 'import torch; print(torch.__version__)' 2>/dev/null || true
}

# The seen-to-work torch is still there. Reading its version costs a twentieth of importing it.
torch_is_known() {
  [[ -f $venv_notes/torch ]] &&
    "$venv_python" -c 'import sys; from importlib.metadata import version; sys.exit(version("torch") != sys.argv[1])' \
      "$(<$venv_notes/torch)" 2>/dev/null
}

# A torch that is there already, in .venv or in the base Python, is used whatever its version.
use_present_torch() {
  local version
  version=$(torch_of "$venv_python")
  if [[ -z $version && -n $(torch_of "$base_python") ]]; then
    sed -i 's/^include-system-site-packages *=.*/include-system-site-packages = true/' .venv/pyvenv.cfg
    version=$(torch_of "$venv_python")
  fi
  if [[ -z $version ]]; then return 1; fi
  "$venv_python" -c 'from importlib.metadata import version; print(version("torch"))' >$venv_notes/torch
}

ensure_test_tools() {
  begin "Python test tools and torch"
  local wanted=(scripts/requirements-test.txt) with_torch=
  if ! torch_is_known && ! use_present_torch; then
    wanted+=(scripts/requirements-torch.txt)
    with_torch=1
  fi
  if [[ -z $with_torch ]] && ! pins_missing "${wanted[@]}"; then
    end "torch $(<$venv_notes/torch)"
    return
  fi
  local arguments=("${wanted[@]/#/--requirement=}")
  announce_download "${arguments[@]}"
  pip_install pip-test "${arguments[@]}" || fail "the Python test tools could not be installed; $advice_pip"
  if [[ -n $with_torch ]]; then
    use_present_torch || fail "torch was installed but cannot be imported; try: $venv_python -c 'import torch'"
  fi
  end "torch $(<$venv_notes/torch)"
}

# Hash of everything that can change the package: the whole tree but for what surely cannot.
package_inputs() {
  {
    find . \( -name .git -o -name __pycache__ -o -name '.*_cache' -o -name .hypothesis -o -path ./build -o -path ./.venv \
      -o -path ./dist -o -path ./tests -o -path ./python/tests -o -path ./docs -o -path ./bench -o -path ./fuzz \
      -o -path ./.ci \) -prune -o -type f -print0 | sort -z | xargs -0 sha256sum
    "$venv_python" --version
    "${CXX:-g++}" --version
    echo "${CXX:-}" "${CXXFLAGS:-}" "${LDFLAGS:-}" "${CMAKE_ARGS:-}" "${SKBUILD_CMAKE_ARGS:-}"
  } | sha256sum
}

# From the project's root `import tidemark` also finds the folder of the C++ library, as a package without a file.
package_imports() {
  "$venv_python" -c 'import tidemark; assert tidemark.__file__' 2>/dev/null
}

ensure_package() {
  begin "Python package"
  local inputs
  inputs=$(package_inputs)
  if [[ -f $venv_notes/package && $(<$venv_notes/package) == "$inputs" ]] && package_imports; then
    end "unchanged"
    return
  fi
  # The release build has compiled the library already: only the bindings are left to compile.
  rm -rf build/wheel build/installed
  run_logged install-release cmake --install build --prefix build/installed ||
    fail "the release build could not be copied to build/installed; see $current_log"
  # First a wheel, so that a build that fails leaves the installed package as it was.
  run_logged wheel "$venv_python" -m pip wheel --no-build-isolation --no-deps --no-index --wheel-dir build/wheel \
    --config-settings=cmake.define.TIDEMARK_USE_INSTALLED=ON \
    --config-settings=cmake.define.tidemark_ROOT="$PWD/build/installed" . ||
    fail "the Python package did not build; see $logs/wheel.log"
  rm -f $venv_notes/package
  pip_install pip-package --no-deps --no-index --force-reinstall build/wheel/*.whl ||
    fail "the Python package could not be installed into .venv; see $logs/pip-package.log"
  package_imports || fail "the package was installed but cannot be imported; try: $venv_python -c 'import tidemark'"
  echo "$inputs" >$venv_notes/package
  end "installed"
}
