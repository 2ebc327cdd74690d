//! The server in the list of an rpcbind, which runs in a network of its own.

use std::path::Path;
use std::process::Command;

use crate::scratch::Scratch;
use crate::server::afflux;

/// Starts an rpcbind and servers, and prints what clients see. All ends with the shell. Arguments: scratch folder, the
/// program.
const SCRIPT: &str = r#"
set -e
ip link set lo up
ip addr add 192.0.2.1/32 dev lo
mount -t tmpfs none /run
mkdir /run/rpcbind "$1/a" "$1/b"
# NAME DIRECTORY ADDRESS...: serves until its end, and waits for its first line.
serve() {
    name=$1 directory=$2 listen=$3; shift 3
    mkfifo "$1.ready" 2> /dev/null || true
    fifo="$1.ready"; shift
    "$AFFLUX" serve "$directory" --listen "$listen" --allow 192.0.2.0/24 --cache 64MiB --json --shared --log error \
        --control "$fifo.sock" --state "$fifo.state" "$@" > "$fifo" &
    server=$!
    exec 4< "$fifo"
    read -r line <&4
    echo "$name: $line"
}
said() { "$@" 2>&1 | sed "s/^/$1: /"; }
AFFLUX=$2
serve none "$1/a" 192.0.2.1:32049 "$1/0"
kill $server; wait $server
named() { rpcinfo 192.0.2.1 2> /dev/null | grep -q 192.0.2.1.125.49; }
# One that starts after the server, and then another one.
serve late "$1/a" 192.0.2.1:32049 "$1/6"
rpcbind -f &
early=$!
until named; do :; done
echo "early rpcbind: named"
kill $early; wait $early || true
# It goes to the background once it listens.
rpcbind
until named; do :; done
echo "next rpcbind: named"
kill $server; wait $server
serve loopback "$1/a" 127.0.0.1:32049 "$1/1"
kill $server; wait $server
serve off "$1/a" 192.0.2.1:32049 "$1/2" --rpcbind off
kill $server; wait $server
serve first "$1/a" 192.0.2.1:32049 "$1/3"
first=$server
said rpcinfo -s
said showmount -e 192.0.2.1
said showmount -a 192.0.2.1
said rpcinfo -n 32049 -t 192.0.2.1 100021 4
serve second "$1/b" 192.0.2.1:32050 "$1/4"
kill $server; wait $server
echo "still: $(rpcinfo 192.0.2.1 | grep -c 192.0.2.1.125.49)"
kill -9 $first; wait $first || true
serve third "$1/b" 192.0.2.1:32051 "$1/5"
echo "replaced: $(rpcinfo 192.0.2.1 | grep -c 192.0.2.1.125.49 || true) $(rpcinfo 192.0.2.1 | grep -c 192.0.2.1.125.51)"
kill $server; wait $server
echo "ended: $(rpcinfo 192.0.2.1 | grep -c 192.0.2.1 || true)"
"#;

#[test]
fn an_rpcbind_names_the_server_unless_it_names_another_and_until_its_end() {
    let is_root = rustix::process::geteuid().is_root();
    let there =
        |program: &str| ["/usr/bin", "/usr/sbin", "/sbin"].iter().any(|place| Path::new(place).join(program).exists());
    if !is_root || !["rpcbind", "rpcinfo", "showmount", "unshare", "ip"].into_iter().all(there) {
        afflux_scratch::skipped!("needs root, rpcbind, nfs-common and iproute2");
        return;
    }
    let scratch = Scratch::new();
    let mut command = afflux(scratch.path());
    let program = command.get_program().to_owned();
    // An unmount of another test's disk reaches the namespace.
    let namespaces = ["--net", "--mount", "--propagation", "slave", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let environment: Vec<_> =
        command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
    command = Command::new("unshare");
    for (name, value) in environment {
        match value {
            Some(value) => command.env(&name, value),
            None => command.env_remove(&name),
        };
    }
    let output =
        command.args(namespaces).args(["sh", "-c", SCRIPT, "sh"]).arg(scratch.path()).arg(program).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let line =
        |start: &str| said.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}\n{said}"));
    assert!(!line("none:").contains("rpcbind"), "{said}");
    assert!(!line("late:").contains("rpcbind"), "{said}");
    assert_eq!((line("early rpcbind:"), line("next rpcbind:")), ("early rpcbind: named", "next rpcbind: named"));
    assert!(line("loopback:").contains("rpcbind does not name this server: other machines do not reach"), "{said}");
    assert!(!line("off:").contains("rpcbind"), "{said}");
    assert!(line("first:").contains("rpcbind names this server"), "{said}");
    // Program, versions, transports, name, owner.
    for (program, versions) in [("100003", "4,3"), ("100005", "3"), ("100021", "4")] {
        let fields: Vec<&str> = line(&format!("rpcinfo:     {program}")).split_whitespace().collect();
        assert_eq!(fields[2..4], [versions, "tcp"], "{said}");
    }
    assert!(said.contains("showmount: Export list for 192.0.2.1:\nshowmount: /"), "{said}");
    assert!(said.contains("showmount: All mount points on 192.0.2.1:"), "{said}");
    assert!(said.contains("rpcinfo: program 100021 version 4 ready and waiting"), "{said}");
    assert!(line("second:").contains("another NFS server is in its list (tcp at 192.0.2.1.125.49)"), "{said}");
    assert_eq!(line("still:"), "still: 4");
    assert!(line("third:").contains("rpcbind names this server"), "{said}");
    assert_eq!(line("replaced:"), "replaced: 0 4");
    assert_eq!(line("ended:"), "ended: 0");
    assert!(output.status.success(), "{said}");
}
