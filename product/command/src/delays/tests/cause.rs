use std::collections::BTreeMap;

use afflux_engine::WaitTimes;

use super::super::{SeenReports, sentence};
use crate::control::messages::{
    DiskCacheGauges, FigureGauge, PauseGauges, PeerGauges, Report, StoreGauges, WaiterGauges,
};
use crate::stat::tests::report;

const S: u64 = 1_000_000_000;

/// A second of a server, which `change` fills; two of five samples found calls in flight.
fn told(change: impl FnOnce(&mut Report)) -> String {
    let (before, mut now) = (report(S), report(2 * S));
    change(&mut now);
    sentence(&SeenReports { before, now, looks: 5, on_their_way: 2 })
}

fn times(ns: u64) -> WaitTimes {
    WaitTimes { count: 1, ns, ..WaitTimes::default() }
}

#[test]
fn a_disk_that_hangs_comes_first() {
    let said = told(|now| {
        now.devices[0].status.stalled_ns = Some(12 * S);
        now.devices[0].waits.calls.reclaim = times(5 * S);
    });
    assert_eq!(said, "The disk sda1 is the cause: it hangs, and has completed nothing for 12.0 s.");
}

#[test]
fn a_disk_that_hangs_for_names_is_the_cause_although_calls_are_on_their_way() {
    let said = told(|now| now.devices[0].status.names_stalled_ns = Some(12 * S));
    assert_eq!(said, "The disk sda1 is the cause: it hangs, and a call for names or attributes waits for 12.0 s.");
}

#[test]
fn a_store_that_is_away_comes_before_a_disk_that_hangs() {
    let said = told(|now| {
        (now.devices[0].status.stalled_ns, now.devices[0].status.away_ns) = (Some(12 * S), Some(13 * S));
    });
    assert_eq!(
        said,
        "The store behind sda1 is the cause: it has not answered for 13.0 s, and its writers and syncs wait."
    );
}

// rule: while a request to a store waits, nobody says that nothing waits
#[test]
fn a_request_that_waits_for_its_store_is_the_cause_though_no_call_waits_in_the_engine() {
    let told = |waiting_ns, trouble: Option<&str>| {
        told(|now| {
            let trouble = trouble.map(str::to_owned);
            now.devices[0].store = Some(StoreGauges { waiting: 2, waiting_ns, trouble, ..StoreGauges::default() });
        })
    };
    assert_eq!(
        told(3 * S, Some("SlowDown")),
        "The store behind sda1 is the cause: 2 requests wait for it, the oldest for 3.00 s (SlowDown)."
    );
    assert!(told(S, None).contains("is the cause: 2 requests wait"));
    assert!(!told(S - 1, None).contains("store"), "requests that pass are no waits");
}

#[test]
fn a_slow_disk_of_a_disk_cache_is_the_cause() {
    let said = told(|now| {
        let disk_cache = Some(DiskCacheGauges { rests: 1, ..DiskCacheGauges::default() });
        now.devices[0].store = Some(StoreGauges { disk_cache, ..StoreGauges::default() });
    });
    assert!(said.starts_with("The disk of --disk-cache is the cause"), "{said}");
}

#[test]
fn paused_writers_are_due_to_a_busy_disk_or_to_the_budget_of_an_idle_one() {
    let paused = |busy_ns| {
        told(|now| {
            let device = &mut now.devices[0];
            (device.waits.calls.throttle, device.status.busy_ns, device.status.written_bytes) =
                (times(S / 2), busy_ns, 12_000_000);
            let figure = |ns| Some(FigureGauge::Number(ns));
            let figures = [("owed_ns", figure(S)), ("budget_in_force_ns", figure(S))];
            device.in_force = figures.map(|(name, figure)| (name.to_owned(), figure)).into();
        })
    };
    let said = paused(S);
    assert!(
        said.starts_with("The disk sda1 is the cause: calls waited 500 ms") && said.contains("12.0 MB/s"),
        "{said}"
    );
    let said = paused(S / 3);
    assert!(said.starts_with("The budget of sda1 is the cause:") && said.contains("budget_ms"), "{said}");
    assert!(said.contains("1.00 s of 1.00 s") && said.contains("busy 33.3 %"), "{said}");
}

#[test]
fn the_longest_kind_of_wait_decides_and_one_that_lasts_counts() {
    let said = told(|now| {
        (now.devices[0].waits.calls.read, now.devices[0].waits.calls.sync) = (times(S), times(S / 2));
    });
    assert!(said.contains("not cached") && said.starts_with("The disk sda1"), "{said}");
    let said = told(|now| {
        now.devices[0].waits.calls.read = times(S);
        let waiter = WaiterGauges { file: "f".into(), client: None, waits_for: "sync".into(), calls: 2, ns: 9 * S };
        now.devices[0].waiting = vec![waiter];
    });
    assert!(said.contains("calls waited 2.00 s") && said.contains("durable"), "{said}");
    let said = told(|now| now.devices[0].waits.calls.reclaim = times(S));
    assert!(said.starts_with("The cache is the cause") && said.contains("--cache"), "{said}");
    let said = told(|now| {
        now.devices[0].waits.calls.throttle = times(S);
        let cause = "memory guard".to_owned();
        now.devices[0].pauses = vec![PauseGauges { cause, waiting: 0, count: 1, ns: S, longest_ns: S }];
    });
    assert!(said.starts_with("The cache is the cause"), "{said}");
}

#[test]
fn waits_of_the_time_before_and_small_ones_do_not_count() {
    let (mut before, mut now) = (report(S), report(2 * S));
    (before.devices[0].waits.calls.sync, now.devices[0].waits.calls.sync) = (times(90 * S), times(90 * S + S / 21));
    let said = sentence(&SeenReports { before, now, looks: 5, on_their_way: 0 });
    assert!(said.starts_with("Nothing waited in the last 1.00 s"), "{said}");
}

#[test]
fn where_nothing_waited_the_network_or_the_client_is_named_with_the_evidence() {
    let calling = |on_their_way| {
        let (before, mut now) = (report(S), report(2 * S));
        now.nfs.answered.calls = 212;
        let peer =
            PeerGauges { connections: 1, received_bytes: 11_950_000, sent_bytes: 40_000, ..PeerGauges::default() };
        now.nfs.clients = BTreeMap::from([("192.0.2.7".to_owned(), peer)]);
        sentence(&SeenReports { before, now, looks: 5, on_their_way })
    };
    let said = calling(4);
    assert!(said.contains("4 of 5 looks") && said.contains(": the network is the cause"), "{said}");
    assert!(said.contains("212 calls/s") && said.contains("11.9 MB/s in"), "{said}");
    let said = calling(1);
    assert!(said.contains("4 of 5 looks found no call: the client is the cause"), "{said}");
    assert!(told(|_| ()).contains("no client called"), "{}", told(|_| ()));
    assert!(told(|now| now.nfs.connections = 0).contains("no client is connected"));
}

#[test]
fn the_buffers_of_idle_connections_are_no_calls_on_their_way() {
    let looked = |connections_at_work| {
        let mut seen = SeenReports::begins(report(S));
        for look in 1..=5 {
            let mut now = report(S + look * S / 5);
            now.nfs.answered.calls = look;
            (now.nfs.request_bytes, now.nfs.connections_at_work) = (16 << 10, connections_at_work);
            seen.look(now);
        }
        sentence(&seen)
    };
    let said = looked(0);
    assert!(said.contains("5 of 5 looks found no call: the client is the cause"), "{said}");
    let said = looked(1);
    assert!(said.contains("5 of 5 looks") && said.contains(": the network is the cause"), "{said}");
}

/// Calls of clients, and of programs on a mount.
const FRONTS: [fn(&mut Report, u64); 2] = [
    |now, calls| now.nfs.answered.calls = calls,
    |now, calls| {
        (now.mount, now.nfs.connections) = (Some("/mnt".to_owned()), 0);
        now.mount_answered.calls = calls;
    },
];

#[test]
fn changes_of_names_wait_for_the_disk_unless_they_are_answered_early() {
    for answer in FRONTS {
        let creating = |names_durable, changes| {
            told(|now| {
                now.names_durable = names_durable;
                answer(now, 120);
                now.counters.insert("names_changed".to_owned(), changes);
            })
        };
        let said = creating(true, 30);
        assert!(said.contains("30 names a second") && said.contains("--async-metadata"), "{said}");
        for said in [creating(false, 30), creating(true, 12)] {
            assert!(
                said.contains("the client is the cause") || said.contains("the programs on the mount are"),
                "{said}"
            );
        }
    }
}

#[test]
fn no_network_is_blamed_where_there_is_none() {
    let on_mount = |calls| told(|now| FRONTS[1](now, calls));
    assert!(on_mount(0).contains("no program called"), "{}", on_mount(0));
    assert_eq!(on_mount(7), "Nothing waited in the last 1.00 s: the programs on the mount are the cause (7 calls/s).");
}
