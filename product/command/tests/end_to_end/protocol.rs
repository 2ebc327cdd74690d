//! The checks of the protocol, on the real server over real file systems.

use std::fs;

use afflux_nfs_client::check::{self, Failure, More, Target, make_links};

use crate::foreign_calls::is_confined;
use crate::scratch::{Mount, Scratch};
use crate::server::Server;

const SMALL_BYTES: u64 = 24 << 20;

/// Rules about callers other than the server's user. A server of an ordinary user carries out all calls as that user.
const OF_OTHER_CALLERS: &[&str] = &["denied", "not_the_owner", "owner_writes_anyway"];

#[test]
fn the_server_keeps_every_rule_of_the_protocol_check() {
    let scratch = Scratch::new();
    let (export, small, read_only) =
        (scratch.directory("export"), scratch.directory("small"), scratch.directory("read-only"));
    let mut served = vec![export.as_path()];
    let mut more = More::default();
    let small_disk = Mount::ext4(&scratch.path().join("image"), &small, SMALL_BYTES);
    if small_disk.is_some() {
        make_links(&small).unwrap();
        served.push(&small);
        more.small = Some("/small".to_owned());
    }
    let read_only_disk = Mount::tmpfs(&read_only, 1 << 20);
    if let Some(disk) = &read_only_disk {
        fs::create_dir(read_only.join("directory")).unwrap();
        fs::write(read_only.join("file"), "file").unwrap();
        disk.take_no_changes();
        served.push(&read_only);
        more.read_only = Some("/read-only".to_owned());
    }
    let server = Server::start(scratch.path(), &served, &[]);
    let address = ([127, 0, 0, 1], server.port()).into();
    let export = server.ready["serving"][0]["export"].as_str().unwrap().to_owned();
    let target = Target { nfs: address, mount: address, export, more };
    let failed = |check: &afflux_nfs_client::check::Check| match check.run(&target) {
        Ok(()) => None,
        Err(Failure::Missing(what)) => {
            afflux_scratch::skipped!("{}: needs {what}", check.name);
            None
        }
        Err(failure) => Some(format!("{}: {failure}", check.name)),
    };
    let left_out = if rustix::process::geteuid().is_root() { &[] } else { OF_OTHER_CALLERS };
    let broken: Vec<String> = check::all().filter(|check| !left_out.contains(&check.name)).filter_map(failed).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    // All procedures were called, so that all threads for them exist by now.
    is_confined(&server);
    server.stop();
}

// rule: a path of a mount begins in the export, whatever the host's path of the export is
#[test]
fn an_export_is_mounted_by_its_name_and_not_by_its_path_on_the_host() {
    let scratch = Scratch::new();
    let (first, second) = (scratch.directory("first"), scratch.directory("second"));
    fs::create_dir(second.join("below")).unwrap();
    for served in [vec![first.as_path()], vec![&first, &second]] {
        let server = Server::start(scratch.path(), &served, &[]);
        let mut client = afflux_nfs_client::Client::connect(("127.0.0.1", server.port())).unwrap();
        match served.len() {
            1 => _ = client.mount("/").unwrap(),
            _ => ["/first", "/second", "/second/below"].into_iter().for_each(|path| _ = client.mount(path).unwrap()),
        }
        for path in [scratch.path(), &first, &second, &second.join("below")] {
            let refused = client.mount(path.to_str().unwrap()).unwrap_err();
            assert_eq!(refused.status(), Some(2), "{}", path.display());
        }
        server.stop();
    }
}
