#!/bin/sh
# Builds the engine for fio.
#
#     build.sh LIBRARIES FIO OUTPUT
#
# LIBRARIES is the directory with cargo's libafflux_c.a, FIO the configured source of the target fio, OUTPUT the engine.
# `cargo xtask fio-engine` finds all of these and calls this script.
set -eu
if [ $# -ne 3 ]; then
    echo "usage: build.sh LIBRARIES FIO OUTPUT" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
# Warnings about fio's own headers are off. The engine is never unloaded, since threads of its cache may run until the
# process ends.
exec "${CC:-cc}" -std=gnu11 -O2 -g -D_GNU_SOURCE -Wall -Wextra -Wno-unused-parameter -Werror -fPIC -shared ${CFLAGS-} \
    -include "$2/config-host.h" -isystem "$2" -I"$here/../include" "$here/afflux.c" "$1/libafflux_c.a" \
    -Wl,--exclude-libs,ALL -Wl,-z,nodelete -lgcc_s -lutil -lrt -lpthread -lm -ldl -o "$3"
