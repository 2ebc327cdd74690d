use std::collections::BTreeMap;

use afflux_engine::{DelayTimes, DeviceStatus, EngineStatus, PerWait, WaitTimes};

use expect_test::expect;

use super::lines;
use crate::control::messages::{
    AnsweredCalls, CacheGauges, DelayGauges, DeviceGauges, DiskCacheGauges, FigureGauge, NfsGauges, PauseGauges,
    Report, StoreGauges, WaiterGauges,
};

pub(crate) fn report(uptime_ns: u64) -> Report {
    Report {
        mount: None,
        listen: "127.0.0.1:2049".into(),
        serving: Vec::new(),
        uptime_ns,
        cache: CacheGauges {
            status: EngineStatus {
                cache_bytes: 64 << 20,
                free_bytes: 48 << 20,
                dirty_bytes: 1 << 20,
                dirty_limit_bytes: 32 << 20,
                files: 1204,
                ..EngineStatus::default()
            },
            resident_huge_bytes: 30 << 20,
            resident_base_bytes: 10 << 20,
            longest_poll_ns: 1_200_000,
            arena: None,
        },
        policy: "afflux".into(),
        eviction: "s3-window".into(),
        names_durable: true,
        devices: vec![DeviceGauges {
            status: DeviceStatus {
                name: "sda1".into(),
                dirty_bytes: 1 << 20,
                dirty_runs: 3,
                dirty_limit_bytes: 32 << 20,
                background_threshold_bytes: 3 << 20,
                files_dirty: 1,
                ..DeviceStatus::default()
            },
            described: "USB".into(),
            b_dirty: 0,
            b_io: 0,
            b_more_io: 0,
            last_error: None,
            knobs: BTreeMap::new(),
            knobs_in_force: Vec::new(),
            store: None,
            in_force: BTreeMap::new(),
            pauses: Vec::new(),
            waits: PerWait::default(),
            waiting: Vec::new(),
            waiting_more: 0,
            clients: Vec::new(),
        }],
        mount_answered: AnsweredCalls::default(),
        nfs: NfsGauges { connections: 1, ..NfsGauges::default() },
        counters: BTreeMap::new(),
        knobs: BTreeMap::new(),
    }
}

#[test]
fn a_report_passes_through_json_and_one_without_a_figure_is_read() {
    let report = report(7);
    let mut json = serde_json::to_value(&report).unwrap();
    assert_eq!(serde_json::from_value::<Report>(json.clone()).unwrap(), report);
    let device = json["devices"][0].as_object_mut().unwrap();
    assert_eq!(device.remove("dirty_runs"), Some(3.into()), "the engine's figures stand beside the server's");
    assert_eq!(serde_json::from_value::<Report>(json).unwrap().devices[0].status.dirty_runs, 0);
}

#[test]
fn rates_are_differences_over_the_time_between() {
    let before = report(1_000_000_000);
    let mut now = report(1_500_000_000);
    now.devices[0].status.written_bytes = 12_450_000;
    now.devices[0].status.writers_waiting = 2;
    now.counters = BTreeMap::from([
        ("read_hit_pages".to_owned(), 972),
        ("read_miss_pages".to_owned(), 28),
        ("pgsteal".to_owned(), 602),
        ("nr_dirtied".to_owned(), 1000),
        ("pgpgout".to_owned(), 1050 * super::PAGE_BYTES),
    ]);
    now.nfs.answered = AnsweredCalls { calls: 156, reads: 150, ..AnsweredCalls::default() };
    (now.nfs.sessions, now.nfs.open_files) = (1, 2);
    (now.nfs.delegations, now.nfs.delegations_revoked) = (40, 1);
    let text = lines(&before, &now);
    expect![[r#"
        sda1   24.9 MB/s write   dirty 1.00 MiB (256 pages in 3 runs) of 32.0 MiB, flushed above 3.00 MiB   2 writers waiting
                 BdiWriteback 0 kB  BdiDirtyThresh 32,768 kB  BackgroundThresh 3,072 kB  BdiDirtied 0 kB  BdiWritten 12,158 kB  BdiWriteBandwidth unknown  BdiReclaimable 1,024 kB  DirtyThresh 32,768 kB  b_dirty 0  b_io 0  b_more_io 0
        cache  16.0 MiB of 64.0 MiB   hit 97.2 %   dirty 1.00 MiB   written 1.05 for each byte that became dirty   evicted 1,204/s by s3-window   1,204 files   memory 40.0 MiB, 30.0 MiB of it in 2 MiB pages
        nfs    1 connection   312 calls/s   READ 300/s   1 session   2 open files   40 delegations   1 delegation revoked
    "#]].assert_eq(&text);
}

#[test]
fn the_holder_of_the_memory_is_named() {
    let mut now = report(1);
    for (arena, words) in [("systemd", "arena systemd"), ("/dev/shm/a\x1b", "arena /dev/shm/a\\u001b")] {
        now.cache.arena = Some(arena.to_owned());
        let text = lines(&now, &now);
        assert!(text.contains(&format!("in 2 MiB pages   {words}\n")), "{text}");
    }
}

#[test]
fn the_measured_speed_of_a_device_is_said_once_known() {
    let mut now = report(1);
    now.devices[0].status.background_threshold_bytes = 0;
    let text = lines(&now, &now);
    assert!(text.contains("flushed at once (speed not known yet)\n"), "{text}");
    now.devices[0].status.background_threshold_bytes = 3 << 20;
    now.devices[0].status.write_bandwidth_bytes_per_s = Some(25_000_000);
    let text = lines(&now, &now);
    assert!(text.contains("flushed above 3.00 MiB   writes up to 25.0 MB/s\n"), "{text}");
}

#[test]
fn a_failing_device_says_why() {
    let mut now = report(1);
    now.devices[0].status.files_failed = 3;
    now.devices[0].last_error = Some("no space left on the device".into());
    let text = lines(&now, &now);
    assert!(text.contains("3 files could not be written (no space left on the device)"), "{text}");
    now.devices[0].status.files_failed = 1;
    let text = lines(&now, &now);
    assert!(text.contains("   1 file could not be written"), "{text}");
    // As after a quota, which is none of the device's.
    now.devices[0].last_error = None;
    let text = lines(&now, &now);
    assert!(text.contains("   1 file could not be written") && !text.contains("unknown error"), "{text}");
}

#[test]
fn a_device_s_name_and_error_stay_in_their_line_and_control_nothing() {
    let mut now = report(1_000_000_000);
    now.devices[0].status.name = "a\n\x1b[31mü".into();
    now.devices[0].status.files_failed = 1;
    now.devices[0].last_error = Some("gone\u{202e}\n".into());
    let text = lines(&report(0), &now);
    assert!(text.starts_with("a\\n\\u001b[31mü  ") && text.contains("(gone\\u202e\\n)"), "{text}");
    assert_eq!(text.lines().count(), 4);
}

fn client(address: &str, ns: u64) -> DelayGauges {
    let throttle = WaitTimes { count: 1, ns, ..WaitTimes::default() };
    let times = DelayTimes { throttle, ..DelayTimes::default() };
    DelayGauges { client: Some(address.into()), uid: Some(7), times, ..DelayGauges::default() }
}

#[test]
fn waits_stand_below_their_device_and_each_says_what_it_is() {
    let (mut before, mut now) = (report(0), report(500_000_000));
    let times = WaitTimes {
        count: 1204,
        ns: 12_400_000_000,
        p50_ns: 12_000_000,
        p99_ns: 80_100_000,
        p999_ns: 99,
        max_ns: 102_000_000,
    };
    let device = &mut now.devices[0];
    let calls = DelayTimes { throttle: times, ..DelayTimes::default() };
    device.waits = PerWait { calls, commit: WaitTimes { count: 1, ..times }, ..PerWait::default() };
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
    let rows: Vec<&str> = text.lines().skip(2).take(6).collect();
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
            "         waits of clients that ended in the last 500 ms: 10.0.0.7 uid 7 500 ms, 10.0.0.5 uid 7 400 ms",
        ]
    );
    assert_eq!(text.lines().count(), 10);
}

/// The flush budget's figures for a device, some replaced by `others`.
fn in_force(others: &[(&str, FigureGauge)]) -> BTreeMap<String, Option<FigureGauge>> {
    let values = [
        ("budget_ns", 1_000_000_000),
        ("budget_in_force_ns", 1_000_000_000),
        ("unpaused_ns", 250_000_000),
        ("owed_ns", 610_000_000),
        ("counted_ns", 610_000_000),
        ("payers_on_average", 1),
        ("run_ns", 31_000),
        ("mib_ns", 1_048_576),
        ("write_run_ns", 31_000),
        ("write_mib_ns", 1_048_576),
        ("write_age_ns", 40_000_000),
        ("read_run_ns", 10_000_000),
        ("read_mib_ns", 41_943_040),
        ("in_flight_max_ns", 100_000_000),
        ("parallel_requests", 4),
    ];
    let words = [("budget_because", "asked for"), ("knowledge", "known")];
    let numbers = values.map(|(name, value)| (name.to_owned(), Some(FigureGauge::Number(value))));
    let words = words.map(|(name, word)| (name.to_owned(), Some(FigureGauge::Word(word.into()))));
    let unknown = ["read_age_ns", "unloaded_latency_ns"].map(|name| (name.to_owned(), None));
    let others = others.iter().map(|(name, value)| ((*name).to_owned(), Some(value.clone())));
    numbers.into_iter().chain(words).chain(unknown).chain(others).collect()
}

#[test]
fn the_budget_in_force_and_why_stand_below_their_device() {
    let mut now = report(1);
    let mut said = |others: &[(&str, FigureGauge)]| {
        now.devices[0].in_force = in_force(others);
        lines(&now, &now).lines().skip(2).map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    let rows = said(&[]);
    assert_eq!(
        rows[..3],
        [
            "owes 610 ms of 1.00 s (as requested); writers pause above 250 ms",
            "learned: writes 31.0 µs a run and 1.00 GB/s (40.0 ms ago), reads 10.0 ms a run and 25.0 MB/s (not measured yet)",
            "in flight: 4 writes at once, or as many as take 100 ms",
        ]
    );
    let (number, word) = (FigureGauge::Number, |word: &str| FigureGauge::Word(word.into()));
    let rows = said(&[
        ("budget_because", word("many writers")),
        ("budget_in_force_ns", number(4_800_000_000)),
        ("payers_on_average", number(100)),
        ("knowledge", word("cold")),
        ("unloaded_latency_ns", number(8_000_000)),
    ]);
    assert!(
        rows[0].starts_with("owes 610 ms of 4.80 s (1.00 s were requested; 100 writers and their runs need more);")
    );
    assert!(
        rows[1].ends_with("; too little is known, so that a run counts as 31.0 µs and a MiB as 1.05 ms"),
        "{rows:?}"
    );
    assert!(rows[2].ends_with("take 100 ms; one alone takes 8.00 ms"), "{rows:?}");
    let rows = said(&[("budget_because", word("memory guard")), ("counted_ns", number(900_000_000))]);
    assert!(rows[0].contains("(counted as 900 ms: memory for dirty data runs short)"), "{rows:?}");
}

#[test]
fn figures_of_another_policy_are_shown_by_their_names() {
    let mut now = report(1);
    now.devices[0].in_force =
        BTreeMap::from([("background_because".to_owned(), Some(FigureGauge::Word("time".into())))]);
    assert!(lines(&now, &now).contains("\n         background_because time\n"));
}

#[test]
fn a_device_that_hangs_is_told_with_its_age() {
    let mut now = report(1);
    now.devices[0].status.stalled_ns = Some(12_300_000_000);
    let text = lines(&now, &now);
    assert!(text.contains("   HANGS: has completed nothing for 12.3 s\n"), "{text}");
    now.devices[0].status.refuses = true;
    let text = lines(&now, &now);
    assert!(text.contains("for 12.3 s, writers and syncs are refused\n"), "{text}");
}

#[test]
fn a_device_that_hangs_for_names_is_told_with_the_age_of_the_call() {
    let mut now = report(1);
    now.devices[0].status.names_stalled_ns = Some(12_300_000_000);
    let text = lines(&now, &now);
    assert!(text.contains("   HANGS: a call for names or attributes has not ended for 12.3 s\n"), "{text}");
}

#[test]
fn a_disk_cache_is_told_with_its_hits_and_its_bytes() {
    let mut now = report(1);
    let disk = DiskCacheGauges {
        hits: 3,
        misses: 1,
        read_bytes: 3 << 20,
        written_bytes: 2 << 20,
        ..DiskCacheGauges::default()
    };
    now.devices[0].store = Some(StoreGauges { disk_cache: Some(disk), ..StoreGauges::default() });
    assert!(
        lines(&now, &now).contains("   disk cache 75 % of 4 parts, 3.00 MiB read, 2.00 MiB written"),
        "{}",
        lines(&now, &now)
    );
    now.devices[0].store.as_mut().unwrap().disk_cache = Some(DiskCacheGauges { dropped: 2, rests: 1, ..disk });
    assert!(lines(&now, &now).contains("2.00 MiB written, 2 damaged, too slow 1 time"), "{}", lines(&now, &now));
}

#[test]
fn a_store_that_is_away_is_told_with_its_words_and_its_requests() {
    let (mut before, mut now) = (report(1_000_000_000), report(1_500_000_000));
    let store = |puts, trouble: Option<&str>| {
        Some(StoreGauges { puts, gets: 7, trouble: trouble.map(str::to_owned), ..StoreGauges::default() })
    };
    (before.devices[0].store, now.devices[0].store) = (store(10, None), store(60, Some("SlowDown")));
    (now.devices[0].status.stalled_ns, now.devices[0].status.away_ns) = (Some(1), Some(12_300_000_000));
    let text = lines(&before, &now);
    let away = "AWAY: has not answered for 12.3 s (SlowDown), writers and syncs wait";
    assert!(text.contains(away) && !text.contains("HANGS"), "{text}");
    now.devices[0].status.away_ns = None;
    now.devices[0].store.as_mut().unwrap().waiting_ns = 1_500_000_000;
    now.devices[0].store.as_mut().unwrap().waiting = 1;
    let text = lines(&before, &now);
    let waiting = "waiting for the store: 1 request, the oldest for 1.50 s (SlowDown)";
    assert!(text.contains(waiting) && !text.contains("AWAY"), "{text}");
    assert!(text.contains("requests PUT 60 (100/s) GET 7 (0/s) LIST 0 (0/s) DELETE 0 (0/s)"), "{text}");
}
