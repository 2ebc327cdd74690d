//! The checks of the protocol, on the real server over a real file system.

use nfs_client::check::{CHECKS, Target};

use crate::scratch::Scratch;
use crate::server::Server;

#[test]
fn the_server_keeps_every_rule_of_the_protocol_check() {
    let scratch = Scratch::new();
    let server = Server::start(scratch.path(), &[&scratch.directory("export")], &[]);
    let address = ([127, 0, 0, 1], server.port()).into();
    let export = server.ready["serving"][0]["export"].as_str().unwrap().to_owned();
    let target = Target { nfs: address, mount: address, export };
    let broken: Vec<String> = CHECKS
        .iter()
        .filter_map(|check| check.run(&target).err().map(|failure| format!("{}: {failure}", check.name)))
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
    server.stop();
}
