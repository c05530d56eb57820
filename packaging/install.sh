#!/bin/sh
# Installs Outboard on Debian or Ubuntu from its signed repository for apt, or removes it.
#
#   sh install.sh [--dry-run] [--uninstall] [URL]
#
# URL is that of the repository; default: $OUTBOARD_URL, else the one that published this script. The script prints what it
# will do before it does it; with --dry-run that is all. It changes nothing unless the repository has packages for this
# release, and its key is the one whose SHA-256 is below ($OUTBOARD_KEY_SHA256 in a copy from the sources). It starts no
# service.
set -eu

url=${OUTBOARD_URL:-@URL@}
key_sha256=${OUTBOARD_KEY_SHA256:-@KEY_SHA256@}
key=/etc/apt/keyrings/outboard.asc
source=/etc/apt/sources.list.d/outboard.sources

fail() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }

download() { # PATH FILE
    if command -v curl >/dev/null; then curl -fsSL -o "$2" "$url/$1"
    elif command -v wget >/dev/null; then wget -qO "$2" "$url/$1"
    else fail 'needs curl or wget: apt-get install curl ca-certificates'
    fi
}

install_packages() {
    temporary=$(mktemp -d)
    trap 'rm -rf "$temporary"' EXIT
    download outboard.asc "$temporary/key" || fail "$url has no key outboard.asc: is it the address of the repository?"
    echo "$key_sha256  $temporary/key" | sha256sum --check --status 2>/dev/null ||
        fail "the key of $url is not the one with the SHA-256 $key_sha256: do not trust this repository"
    download "dists/$VERSION_CODENAME/InRelease" "$temporary/release" 2>/dev/null ||
        fail "$url has no packages for $PRETTY_NAME ($VERSION_CODENAME)"

    cat <<END
To install Outboard on $PRETTY_NAME, this script will
  1. save the key of the repository as $key
     (SHA-256 $key_sha256)
  2. add $url to the sources of apt, as $source
  3. run: apt-get update && apt-get install outboard outboard-php
END
    [ -z "$dry_run" ] || exit 0
    [ "$(id -u)" = 0 ] || fail 'needs root: run it with sudo'
    mkdir -p /etc/apt/keyrings
    cp "$temporary/key" "$key"
    cat >"$source" <<END
Types: deb
URIs: $url
Suites: $VERSION_CODENAME
Components: main
Architectures: $(dpkg --print-architecture)
Signed-By: $key
END
    chmod 644 "$key" "$source"
    apt-get -q update || { rm -f "$key" "$source"; fail 'apt-get update failed, see above; nothing was installed'; }
    DEBIAN_FRONTEND=noninteractive apt-get -q -y install outboard outboard-php || fail 'apt-get install failed, see above'
    cat <<END

$(outboard --version) is installed, and not started. Next:
  outboard serve DIRECTORY                                a site on http://127.0.0.1:8080, until Ctrl-C
  sudo outboard serve --domain example.org DIRECTORY      the same with a certificate, on ports 80 and 443
  sudo systemctl enable --now outboard                    as a service, by /etc/outboard/outboard.toml
  man outboard                                            everything else
END
}

remove_packages() {
    installed=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' 'outboard*' 2>/dev/null | sed -n 's/^installed //p' | tr '\n' ' ')
    cat <<END
To remove Outboard, this script will
  1. run: apt-get remove $installed
  2. delete $source and $key
/etc/outboard and the logs remain; apt-get purge deletes them.
END
    [ -z "$dry_run" ] || exit 0
    [ "$(id -u)" = 0 ] || fail 'needs root: run it with sudo'
    # shellcheck disable=SC2086 # a list of packages
    [ -z "$installed" ] || DEBIAN_FRONTEND=noninteractive apt-get -q -y remove $installed || fail 'apt-get remove failed, see above'
    rm -f "$source" "$key"
}

# In a function, so that a script of which only a part has arrived does nothing.
main() {
    dry_run='' action=install_packages
    for argument; do
        case $argument in
        --dry-run) dry_run=1 ;;
        --uninstall) action=remove_packages ;;
        -*) fail "there is no option $argument; there are --dry-run and --uninstall" ;;
        *) url=${argument%/} ;;
        esac
    done
    command -v apt-get >/dev/null || fail 'needs apt-get, of Debian or Ubuntu; for other systems see the guide, docs/guide/install.md'
    . /etc/os-release
    case $url in http://* | https://*) ;; *) fail "'$url' is not the URL of a repository" ;; esac
    "$action"
}
main "$@"
