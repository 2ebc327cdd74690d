use std::collections::BTreeMap;

use super::lines;
use crate::control::messages::{
    CacheGauges, ClientGauges, DeviceGauges, NfsGauges, PauseGauges, Report, TimeGauges, WaitGauges, WaiterGauges,
};

fn report(uptime_ns: u64) -> Report {
    Report {
        listen: "127.0.0.1:2049".into(),
        serving: Vec::new(),
        uptime_ns,
        cache: CacheGauges {
            cache_bytes: 64 << 20,
            free_bytes: 48 << 20,
            dirty_bytes: 1 << 20,
            writeback_bytes: 0,
            pinned_bytes: 0,
            metadata_bytes: 0,
            resident_huge_bytes: 30 << 20,
            resident_base_bytes: 10 << 20,
            files: 1204,
        },
        devices: vec![DeviceGauges {
            name: "sda1".into(),
            described: "USB".into(),
            dirty_bytes: 1 << 20,
            dirty_runs: 3,
            writeback_bytes: 0,
            dirty_limit_bytes: 32 << 20,
            background_threshold_bytes: 3 << 20,
            write_bandwidth_bytes_per_s: None,
            written_bytes: 0,
            busy_ns: 0,
            in_flight_requests: 0,
            writers_waiting: 0,
            files_dirty: 1,
            files_failed: 0,
            last_error: None,
            knobs: BTreeMap::new(),
            pauses: Vec::new(),
            waits: WaitGauges::default(),
            waiting: Vec::new(),
            waiting_more: 0,
            clients: Vec::new(),
        }],
        nfs: NfsGauges { connections: 1, ..NfsGauges::default() },
        counters: BTreeMap::new(),
        knobs: BTreeMap::new(),
    }
}

#[test]
fn rates_are_differences_over_the_time_between() {
    let before = report(1_000_000_000);
    let mut now = report(1_500_000_000);
    now.devices[0].written_bytes = 12_450_000;
    now.devices[0].writers_waiting = 2;
    now.counters = BTreeMap::from([
        ("read_hit_pages".to_owned(), 972),
        ("read_miss_pages".to_owned(), 28),
        ("pgsteal".to_owned(), 602),
        ("nr_dirtied".to_owned(), 1000),
        ("pgpgout".to_owned(), 1050 * super::PAGE_BYTES),
    ]);
    now.nfs.calls = BTreeMap::from([
        ("nfs_read".to_owned(), 100),
        ("nfs_getattr".to_owned(), 5),
        ("mount_mnt".to_owned(), 1),
        ("nfserr_noent".to_owned(), 3),
    ]);
    let text = lines(&before, &now);
    assert_eq!(
        text,
        "sda1   24.9 MB/s write   dirty 1.00 MiB (256 pages in 3 runs) of 32.0 MiB, flushed above 3.00 MiB   2 writers waiting\n\
         cache  16.0 MiB of 64.0 MiB   hit 97.2 %   dirty 1.00 MiB   written 1.05 for each byte that became dirty   evicted 1,204/s   1,204 files   memory 40.0 MiB, 30.0 MiB of it in 2 MiB pages\n\
         nfs    1 connection   212 calls/s   READ 200/s\n"
    );
}

#[test]
fn the_measured_speed_of_a_device_is_said_once_known() {
    let mut now = report(1);
    now.devices[0].background_threshold_bytes = 0;
    let text = lines(&now, &now);
    assert!(text.contains("flushed at once (speed not known yet)\n"), "{text}");
    now.devices[0].background_threshold_bytes = 3 << 20;
    now.devices[0].write_bandwidth_bytes_per_s = Some(25_000_000);
    let text = lines(&now, &now);
    assert!(text.contains("flushed above 3.00 MiB   writes up to 25.0 MB/s\n"), "{text}");
}

#[test]
fn every_figure_of_a_device_is_documented() {
    let document = include_str!("../../../../docs/counters.md");
    let device = serde_json::to_value(&report(1).devices[0]).unwrap();
    for name in device.as_object().unwrap().keys() {
        assert!(document.contains(&format!("| `{name}` |")), "{name} is not in docs/counters.md");
    }
}

#[test]
fn a_failing_device_says_why() {
    let mut now = report(1);
    now.devices[0].files_failed = 3;
    now.devices[0].last_error = Some("no space left on the device".into());
    let text = lines(&now, &now);
    assert!(text.contains("3 files could not be written (no space left on the device)"), "{text}");
    now.devices[0].files_failed = 1;
    let text = lines(&now, &now);
    assert!(text.contains("   1 file could not be written"), "{text}");
}

#[test]
fn a_device_s_name_and_error_stay_in_their_line_and_control_nothing() {
    let mut now = report(1_000_000_000);
    now.devices[0].name = "a\n\x1b[31mü".into();
    now.devices[0].files_failed = 1;
    now.devices[0].last_error = Some("gone\u{202e}\n".into());
    let text = lines(&report(0), &now);
    assert!(text.starts_with("a\\n\\u001b[31mü  ") && text.contains("(gone\\u202e\\n)"), "{text}");
    assert_eq!(text.lines().count(), 3);
}

fn client(address: &str, pause_ns: u64) -> ClientGauges {
    ClientGauges { client: address.into(), waiting: 0, pauses: 1, pause_ns, syncs: 0, sync_ns: 0 }
}

#[test]
fn waits_stand_below_their_device_and_each_says_what_it_is() {
    let (mut before, mut now) = (report(0), report(500_000_000));
    let times = TimeGauges {
        count: 1204,
        ns: 12_400_000_000,
        p50_ns: 12_000_000,
        p99_ns: 80_100_000,
        p999_ns: 99,
        max_ns: 102_000_000,
    };
    let device = &mut now.devices[0];
    device.waits = WaitGauges { throttle: times, commit: TimeGauges { count: 1, ..times }, ..WaitGauges::default() };
    device.pauses = vec![PauseGauges {
        cause: "dirty rate".into(),
        waiting: 1,
        count: 2000,
        ns: 12_400_000_000,
        longest_ns: 100_000_000,
    }];
    device.waiting = vec![WaiterGauges {
        file: "/srv/a\x1bb".into(),
        client: Some("10.0.0.5".into()),
        waits_for: "dirty rate".into(),
        calls: 8,
        ns: 2_100_000_000,
    }];
    device.waiting_more = 12;
    before.devices[0].clients = vec![client("10.0.0.5", 1_000_000_000), client("10.0.0.6", 5)];
    device.clients = vec![client("10.0.0.5", 1_400_000_000), client("10.0.0.6", 5), client("10.0.0.7", 500_000_000)];
    let text = lines(&before, &now);
    let rows: Vec<&str> = text.lines().skip(1).take(6).collect();
    assert_eq!(
        rows,
        [
            "         throttled writes waited: half up to 12.0 ms, 99 % up to 80.1 ms, longest 102 ms \
             (1,204 writes since the start, 12.4 s together)",
            "         because of: dirty rate (2,000 pauses, 12.4 s, longest 100 ms)",
            "         COMMITs took: half up to 12.0 ms, 99 % up to 80.1 ms, longest 102 ms \
             (1 COMMIT since the start, 12.4 s together)",
            "         waiting for 2.10 s: /srv/a\\u001bb by 10.0.0.5, 8 calls (dirty rate)",
            "         and 12 more are waiting",
            "         waits of clients that ended in the last 500 ms: 10.0.0.7 500 ms, 10.0.0.5 400 ms",
        ]
    );
    assert_eq!(text.lines().count(), 9);
}
