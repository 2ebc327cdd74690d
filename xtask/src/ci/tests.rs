use super::{BROWSER, FIO, demo_cache, said_at_the_end};

#[test]
fn what_was_left_out_is_said_with_the_reason_and_nothing_if_nothing_was() {
    assert_eq!(said_at_the_end(&[]), "");
    let said = said_at_the_end(&[FIO, BROWSER]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "Left out: the tests beside the real fio (fio is not installed, Debian package fio).");
    assert!(lines[1].contains("in a browser") && lines[1].contains("cargo xtask test --with-browser"), "{said}");
}

#[test]
fn the_cache_of_a_demo_is_small_unless_it_is_given() {
    assert_eq!(demo_cache(&["/tmp/x", "--listen", "127.0.0.1:0"]), ["--cache", "128MiB"]);
    assert!(demo_cache(&["/tmp/x", "--cache", "1GiB"]).is_empty());
    assert!(demo_cache(&["/tmp/x", "--cache=1GiB"]).is_empty());
}
