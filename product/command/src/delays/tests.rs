use afflux_engine::{DelayTimes, WaitTimes};
use expect_test::expect;

use super::{Delays, DeviceDelayGauges, SHOWN_MAX, blocks};
use crate::control::messages::DelayGauges;

mod cause;

fn times(count: u64, ns: u64) -> DelayTimes {
    let read = WaitTimes { count, ns, p99_ns: 9_000_000, max_ns: 9_100_000, ..WaitTimes::default() };
    DelayTimes { read, ..DelayTimes::default() }
}

fn client(address: &str, count: u64, ns: u64) -> DelayGauges {
    DelayGauges { client: Some(address.into()), uid: Some(1000), times: times(count, ns), ..DelayGauges::default() }
}

fn told(clients: Vec<DelayGauges>, others_count: u64) -> Delays {
    let of_device = DeviceDelayGauges { name: "sd\x1ba1".into(), clients, others: times(3, 30_000), others_count };
    Delays { uptime_ns: 5, devices: vec![of_device] }
}

#[test]
fn a_client_has_a_block_as_getdelays_prints_a_task() {
    let mut one = client("10.0.0.5", 1204, 12_040_000_000);
    one.waiting = 2;
    expect![[r#"
        10.0.0.5 uid 1000 on sd\u001ba1, 2 calls wait now
                     count    delay total  delay average    delay p99    delay max
        THROTTLE         0           0 ns           0 ns         0 ns         0 ns
        RECLAIM          0           0 ns           0 ns         0 ns         0 ns
        READ         1,204         12.0 s        10.0 ms      9.00 ms      9.10 ms
        SYNC             0           0 ns           0 ns         0 ns         0 ns

    "#]]
    .assert_eq(&blocks(&told(vec![one], 0)));
}

#[test]
fn what_is_left_out_is_said() {
    let many = (0..SHOWN_MAX as u64 + 3).map(|at| client(&format!("10.0.0.{at}"), 1, 1)).collect();
    let text = blocks(&told(many, 40));
    assert!(text.contains("10.0.0.15 uid 1000 on") && !text.contains("10.0.0.16"), "{text}");
    assert!(text.contains("\nand 3 more on sd\\u001ba1 that waited less (--json shows them)\n"), "{text}");
    assert!(text.contains("\n40 others on sd\\u001ba1, no longer told apart\n"), "{text}");
    assert_eq!(blocks(&told(Vec::new(), 0)), "nobody has waited\n");
}

#[test]
fn who_is_no_client_is_a_file() {
    let file = DelayGauges { file: Some("/srv/a\nb".into()), ..DelayGauges::default() };
    assert_eq!((file.name(), client("::1", 0, 0).name()), ("/srv/a\\nb".into(), "::1 uid 1000".into()));
}
