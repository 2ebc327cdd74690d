use std::process::Command;

use afflux_scratch::Scratch;

use super::Ready;

fn started(script: &str) -> std::io::Result<Ready> {
    let home = Scratch::new(&std::env::temp_dir(), "ready").unwrap();
    Ready::start(Command::new("sh").args(["-c", script, "sh"]), home.path())
}

#[test]
fn a_server_says_its_port_and_its_export_and_ends_when_told() {
    let line = r#"{"event":"ready","port":2049,"serving":[{"export":"/data","source":"/x"}]}"#;
    let mut ready = started(&format!("echo '{line}'; exec sleep 600")).unwrap();
    assert_eq!((ready.port, ready.export.as_str(), ready.address().port()), (2049, "/data", 2049));
    assert!(ready.ended().unwrap().is_none());
    assert!(!ready.stop().unwrap().success(), "sleep ends by the signal");
}

#[test]
fn the_log_of_a_server_that_does_not_start_is_told() {
    let error = started("echo no such directory >&2").unwrap_err().to_string();
    assert!(error.contains("no such directory"), "{error}");
}
