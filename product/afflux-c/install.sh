#!/bin/sh
# Installs the C interface: header, shared and static library, pkg-config file, and the notices of the crates in them.
#
#     install.sh LIBRARIES PREFIX [DESTDIR]
#
# LIBRARIES is the directory in which cargo left libafflux_c.so and libafflux_c.a. `cargo xtask install-c` builds them, writes the
# notices there, and calls this.
set -eu
if [ $# -lt 2 ] || [ $# -gt 3 ]; then
    echo "usage: install.sh LIBRARIES PREFIX [DESTDIR]" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
libraries=$1
prefix=$2
refuse() { echo "install.sh: the prefix '$prefix' $1" >&2; exit 2; }
# The prefix goes into the file for pkg-config as it is.
case $prefix in
    *[!A-Za-z0-9/._+~:@%,=-]*) refuse "has other characters than letters, digits and /._+~:@%,=-" ;;
    /*) ;;
    *) refuse "is no absolute path" ;;
esac
to=${3:-}$prefix
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' "$here/../../Cargo.toml")
mkdir -p "$to/include" "$to/lib/pkgconfig"
install -m 644 "$here/include/afflux.h" "$to/include/afflux.h"
install -m 644 "$libraries/libafflux_c.a" "$to/lib/libafflux.a"
install -m 755 "$libraries/libafflux_c.so" "$to/lib/libafflux.so.$version"
# The name that programs load at run time, and the name for linking.
ln -sf "libafflux.so.$version" "$to/lib/libafflux.so.0"
ln -sf libafflux.so.0 "$to/lib/libafflux.so"
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" "$here/afflux.pc.in" > "$to/lib/pkgconfig/afflux.pc"
chmod 644 "$to/lib/pkgconfig/afflux.pc"
# A build without `cargo xtask` has none.
if [ -f "$libraries/NOTICES" ]; then
    mkdir -p "$to/share/doc/afflux-c"
    install -m 644 "$libraries/NOTICES" "$to/share/doc/afflux-c/NOTICES"
fi
