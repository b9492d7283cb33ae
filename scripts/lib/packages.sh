# shellcheck shell=bash
# Debian packages: installs those of scripts/debian-packages.txt that are missing, and calls neither apt nor sudo when
# none is.

# packages_of SET...: the package names of these sets, one per line.
packages_of() {
  local set
  for set in "$@"; do
    awk -v set="$set" '$1 == set { print $2 }' scripts/debian-packages.txt
  done
}

missing_packages() {
  local wanted states
  wanted=$(packages_of "$@" | sort -u)
  # shellcheck disable=SC2086 # one word per package
  # dpkg-query fails when it does not know one of them, and still tells about the others.
  states=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null) || true
  comm -23 <(echo "$wanted") <(sed -n 's/^installed //p' <<<"$states" | sort -u)
}

# install_packages SET...
install_packages() {
  begin "Debian packages"
  if [[ ${TIDEMARK_SKIP_PACKAGES:-} == 1 ]]; then
    end "not checked"
    return
  fi
  if ! command -v dpkg-query >/dev/null; then
    fail "this is not a Debian system (no dpkg-query); install what scripts/debian-packages.txt lists in your system's \
way, then run again with TIDEMARK_SKIP_PACKAGES=1"
  fi
  local names missing=() as_root=()
  names=$(missing_packages "$@")
  read -r -d '' -a missing <<<"$names" || true
  if ((${#missing[@]} == 0)); then
    end "nothing missing"
    return
  fi

  local by_hand="apt-get update && apt-get install --no-install-recommends ${missing[*]}"
  if [[ $(id -u) != 0 ]]; then
    if ! command -v sudo >/dev/null; then
      fail "Debian packages are missing and this user is neither root nor has sudo; ask an administrator to run: $by_hand"
    fi
    as_root=(sudo)
  fi
  note "installing ${#missing[@]} missing Debian packages: ${missing[*]}"
  as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)
  # Some other source of the machine may be broken; whether that matters, the installation tells.
  run_logged apt-update "${as_root[@]}" update || true
  run_logged apt-install "${as_root[@]}" install --yes --no-install-recommends "${missing[@]}" ||
    fail "Debian packages could not be installed; check the network and that this user may use sudo (see $logs/apt-update.log), or run as root: $by_hand"
  end "installed ${#missing[@]}"
}
