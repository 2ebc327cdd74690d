use super::{absent, check, listed};
use crate::repository::TextFile;

fn lines(path: &str, text: &str) -> Vec<String> {
    check(&TextFile { path: path.to_owned(), text: text.to_owned() }).into_iter().map(|found| found.place).collect()
}

#[test]
fn a_test_does_not_wait_for_the_clock_however_it_is_spelled() {
    for text in [
        "fn f() { std::thread::sleep(d) }",
        "use std::thread::{self, sleep};",
        "fn f() { thread::sleep(d) }",
        "fn f() { std::thread::park_timeout(d) }",
        "fn f() { let _ = changed.wait_timeout_while(guard, d, |_| true); }",
        "fn f() { receiver.recv_timeout(d).unwrap_err(); }",
        "fn f() { while began.elapsed() < d {} }",
        "fn f() { rustix::event::poll(&mut fds, Some(&d)).unwrap(); }",
        "use tokio::time::{self, timeout};",
        "async fn f() { tokio::time::sleep(d).await }",
        "fn f(on: &LinuxPlatform) { on.block_on(on.sleep_until(at)) }",
        "fn f() { socket.set_read_timeout(Some(d)).unwrap(); }",
    ] {
        for path in ["product/command/tests/a.rs", "product/linux-device/src/a/tests.rs", "tests/disk/tests/a.rs"] {
            assert_eq!(lines(path, text), [format!("{path}:1")], "{text}");
        }
        assert!(
            lines("product/linux-device/benches/a.rs", text).is_empty()
                && lines("product/linux-device/src/a.rs", text).is_empty()
        );
    }
}

#[test]
fn a_test_may_wait_in_virtual_time_and_for_conditions() {
    for text in [
        "fn f() { platform.sleep(d); lab.here.sleep(1); world.run(platform.sleep_until(at)) }",
        "fn f() { afflux_scratch::eventually(\"it ends\", || done()); future.poll(cx); }",
        "// thread::sleep(d)\nconst TEXT: &str = \"park_timeout(d)\"; struct Run { elapsed: u64 }",
    ] {
        assert!(lines("product/command/tests/a.rs", text).is_empty(), "{text}");
    }
}

#[test]
fn the_table_of_waits_can_only_shrink_by_itself() {
    let (path, count) = listed().nth(2).unwrap();
    let with = |count: usize| "fn f() { thread::sleep(d) }\n".repeat(count);
    assert!(lines(path, &with(count)).is_empty());
    assert_eq!(lines(path, &with(count + 1)), [format!("{path}:{}", count + 1)]);
    assert_eq!(lines(path, &with(count - 1)), [format!("{path}:1")], "a stale count");
    assert_eq!(absent(&[]).len(), listed().count());
}
