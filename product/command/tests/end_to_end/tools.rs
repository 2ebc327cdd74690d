//! libnfs's tools, as a newcomer uses them.
//!
//! They mount the part of a path up to the last slash, and all versions so far fail on an empty directory, for any
//! answer of the server. So a file directly in the export `/` has two slashes in its name.

use std::fs;

use crate::scratch::{Bytes, Scratch};
use crate::server::{Server, libnfs, text};

/// Sizes at the edges.
const SIZES: &[usize] = &[0, 1, 511, 512, 4095, 4096, 4097, 65_536, 1_048_576, 5_000_000];

#[test]
fn files_go_in_and_come_out_identical() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &["--cache", "64MiB"]);
    for (at, size) in SIZES.iter().enumerate() {
        let bytes = Bytes::new(at as u64).vec(*size);
        let local = scratch.path().join("local");
        fs::write(&local, &bytes).unwrap();
        let url = server.url(&format!("//file-{at}"));
        let Some(output) = libnfs("nfs-cp", &[local.to_str().unwrap(), &url]) else { return };
        assert!(output.status.success(), "{}", text(&output));
        let output = libnfs("nfs-cat", &[url]).unwrap();
        assert!(output.status.success(), "{size}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout == bytes, "{size} bytes came out as {}", output.stdout.len());
    }
    let output = libnfs("nfs-ls", &[server.url("/")]).unwrap();
    let listing = text(&output);
    assert!(output.status.success(), "{listing}");
    for (at, size) in SIZES.iter().enumerate() {
        let line = listing.lines().find(|line| line.ends_with(&format!("file-{at}"))).unwrap();
        assert!(line.split_whitespace().any(|word| *word == size.to_string()), "{line}");
    }
    server.stop();
    for (at, size) in SIZES.iter().enumerate() {
        assert!(fs::read(data.join(format!("file-{at}"))).unwrap() == Bytes::new(at as u64).vec(*size));
    }
}

#[test]
fn several_directories_are_named_exports_and_can_be_mounted_below() {
    let scratch = Scratch::new();
    let (one, two) = (scratch.directory("one"), scratch.directory("two"));
    fs::create_dir_all(two.join("deep/er")).unwrap();
    fs::write(one.join("a"), "from one").unwrap();
    fs::write(two.join("deep/er/b"), "from two").unwrap();
    let server = Server::start(scratch.path(), &[&one, &two], &[]);
    let Some(output) = libnfs("nfs-cat", &[server.url("/one/a")]) else { return };
    assert_eq!(text(&output), "from one");
    assert_eq!(text(&libnfs("nfs-cat", &[server.url("/two/deep/er/b")]).unwrap()), "from two");
    let outside = libnfs("nfs-cat", &[server.url("/three/a")]).unwrap();
    assert!(!outside.status.success());
    server.stop();
}

// rule: 9: no path, symbolic link or `..` leads out of the served directories, and no race does
#[test]
fn symbolic_links_and_dots_lead_nowhere_outside() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    fs::write(scratch.path().join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink("../secret", data.join("climbs")).unwrap();
    std::os::unix::fs::symlink(scratch.path(), data.join("absolute")).unwrap();
    std::os::unix::fs::symlink("..", data.join("up")).unwrap();
    let server = Server::start(scratch.path(), &[&data], &[]);
    for path in ["//climbs", "/absolute/secret", "/up/secret", "/../secret", "/../../secret"] {
        let Some(output) = libnfs("nfs-cat", &[server.url(path)]) else { return };
        assert!(!text(&output).contains("secret\n") && output.stdout != b"secret", "{path}");
    }
    server.stop();
}
