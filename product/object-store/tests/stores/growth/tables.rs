//! The tables of growth: measured rows, and computed ones beyond.
//!
//! Owns: the rules of computed rows, prices, limits.
//! Does not own: the measurements.
//! Invariants: each row says whether it is measured or computed. Its rule stands above the table.

use std::fmt::Write as _;

use afflux_gateway::Asked;

use super::{Grown, Idle};

pub(super) const FILES: [u64; 3] = [1_000, 10_000, 100_000];
const FILES_COMPUTED: [u64; 4] = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
pub(super) const VOLUMES: [u64; 3] = [1, 10, 100];
const VOLUMES_COMPUTED: u64 = 1_000;
pub(super) const FOLLOWERS: [u64; 2] = [1, 10];
const FOLLOWERS_COMPUTED: u64 = 100;

/// List prices of Amazon S3, storage class Standard, in us-east-1, in dollars.
const PUT_PRICE: f64 = 5e-6;
const GET_PRICE: f64 = 0.4e-6;
const GB_MONTH_PRICE: f64 = 0.023;
const MINUTES_A_MONTH: f64 = 30.0 * 24.0 * 60.0;
/// Amazon documents these requests a second for each prefix, at least.
const PREFIX_GETS: f64 = 5_500.0;
/// The round trip in which times are given.
const TRIP_MS: u64 = 30;
/// The server's caches (`product/object/src/tree/cache.rs`, `product/object-store/src/records/mod.rs`).
const INODES: u64 = 65_536;
const BLOCK_CACHE_BYTES: u64 = 128 << 20;
/// A file has three records, and a filter has ten bits for each.
const FILTER_BITS: u64 = 30;
const MIB: f64 = (1 << 20) as f64;

fn requests(asked: Asked) -> u64 {
    asked.puts + asked.gets + asked.lists + asked.deletes
}

fn bytes(asked: Asked) -> u64 {
    asked.sent_bytes + asked.received_bytes
}

/// The price of a month of such minutes.
fn dollars(asked: Asked) -> f64 {
    let minute = (asked.puts + asked.lists) as f64 * PUT_PRICE + asked.gets as f64 * GET_PRICE;
    minute * MINUTES_A_MONTH
}

fn seconds(trips: u64) -> f64 {
    (trips * TRIP_MS) as f64 / 1_000.0
}

/// The first limit that so many files hit.
fn limit(files: u64, bytes_a_file: u64) -> &'static str {
    if files > BLOCK_CACHE_BYTES * 8 / FILTER_BITS {
        "filters of records exceed the block cache: a cold name reads them again"
    } else if files * bytes_a_file > BLOCK_CACHE_BYTES {
        "records exceed the block cache: a cold name is a GET"
    } else if files > INODES {
        "inodes in memory: later ones come from the block cache"
    } else {
        "none"
    }
}

pub(super) fn files(measured: &[Grown]) -> String {
    let [.., before, last] = measured else { unreachable!("two rows are measured") };
    let mut text = format!(
        "## Files in a volume\n\nFiles of 100 bytes. Measured on a Ceph behind a relay; bytes of records and of their \
         objects in a directory. A computed row scales these bytes from the last measured row. The bytes a second of an \
         idle server grow as they did between the two last measured rows. The memory in use grows by the records, up to \
         the block cache of 128 MiB. All else is that row's.\n\nA \
         time is in round trips, one after the other, counted at a second each and given for {TRIP_MS} ms. A takeover follows a \
         kill after {} commits. On another host, the server's wait for the older one's last answer comes on top: 3 s after \
         its fence. Memory is that of the test's process: after an opening and two minutes, and after a look at each \
         file. The price is of records and idle requests for a month, without the files' bytes (Amazon S3, \
         us-east-1).\n\n| files | how | bytes of records | bytes in the store | PUTs and GETs of an opening | s to open | \
         s to take over | MiB idle, used | idle requests, bytes a second | dollars a month | first limit \
         |\n|-|-|-|-|-|-|-|-|-|-|-|\n",
        super::LOGS
    );
    let slope =
        bytes(last.idle.asked).saturating_sub(bytes(before.idle.asked)) as f64 / (last.files - before.files) as f64;
    let mut row = |files: u64, how: &str, at: &Grown| {
        let scale = |bytes: u64| bytes / at.files * files;
        let (records, stored) = (scale(at.record_bytes), scale(at.stored_bytes));
        let opening = format!("{} and {}", at.opening.puts, at.opening.gets + at.opening.lists);
        let (open, takeover) = (seconds(at.opening_trips), seconds(at.takeover_trips));
        let cached = |records: u64| records.min(BLOCK_CACHE_BYTES);
        let used = at.resident_bytes_used + cached(records) - cached(at.record_bytes / at.files * at.files);
        let (idle, used) = (at.idle.resident_bytes as f64 / MIB, used as f64 / MIB);
        let asked = requests(at.idle.asked) as f64 / 60.0;
        let passed = (bytes(at.idle.asked) as f64 + slope * (files - at.files) as f64) / 60.0;
        let price = stored as f64 / 1e9 * GB_MONTH_PRICE + dollars(at.idle.asked);
        let limit = limit(files, at.record_bytes / at.files);
        writeln!(
            text,
            "| {files} | {how} | {records} | {stored} | {opening} | {open:.1} | {takeover:.1} | {idle:.0}, {used:.0} | \
             {asked:.1}, {passed:.0} | {price:.2} | {limit} |"
        )
        .unwrap();
    };
    measured.iter().for_each(|at| row(at.files, "measured", at));
    FILES_COMPUTED.iter().for_each(|files| row(*files, "computed", last));
    text.push_str("\nNo limit refuses a file before 2^40 of one opening. The limits above cost time only.\n\n");
    text
}

/// Rows of servers of one kind; the last row is computed from the last measured one.
fn idle_rows(text: &mut String, measured: &[(u64, Idle)], computed: u64, limit: impl Fn(u64, f64) -> String) {
    let mut row = |count: u64, how: &str, (of, idle): &(u64, Idle)| {
        let times = count as f64 / *of as f64;
        let asked = requests(idle.asked) as f64 / 60.0 * times;
        let passed = bytes(idle.asked) as f64 / 60.0 * times;
        let memory = idle.resident_bytes as f64 / MIB * times;
        let price = dollars(idle.asked) * times;
        let limit = limit(count, asked);
        writeln!(text, "| {count} | {how} | {asked:.1} | {passed:.0} | {memory:.0} | {price:.2} | {limit} |").unwrap();
    };
    measured.iter().for_each(|at| row(at.0, "measured", at));
    measured.iter().next_back().into_iter().for_each(|at| row(computed, "computed", at));
}

pub(super) fn volumes(measured: &[(u64, Idle)]) -> String {
    let mut text = "## Idle volumes in a bucket\n\nEmpty volumes, open in one process, for a minute. A server of its own \
                    for each takes more memory: see the table above. The computed row scales the one before. A time to \
                    open or to take over is that of one volume, also above: volumes share no object.\n\n| volumes | how | \
                    requests a second | bytes a second | MiB | dollars a month | first limit |\n|-|-|-|-|-|-|-|\n"
        .to_owned();
    idle_rows(&mut text, measured, VOLUMES_COMPUTED, |_, _| {
        "memory of the hosts, which have a server for each".to_owned()
    });
    text.push_str("\nEach volume has its own prefix, so the store spreads them.\n\n");
    text
}

pub(super) fn followers(trips: u64, measured: &[(u64, Idle)]) -> String {
    let mut text = format!(
        "## Followers of a volume\n\nIdle followers of a volume of 1,000 files in one process, for a minute. The computed \
         row scales the one before. A follower opens in {trips} round trips, {:.1} s at {TRIP_MS} ms, and takes nothing \
         over. It asks the writer for nothing.\n\n| followers | how | requests a second | bytes a second | MiB | dollars a \
         month | first limit |\n|-|-|-|-|-|-|-|\n",
        seconds(trips)
    );
    idle_rows(&mut text, measured, FOLLOWERS_COMPUTED, |count, asked| {
        let most = PREFIX_GETS / asked * count as f64;
        format!("the store's {PREFIX_GETS} GETs a second for a prefix, at {most:.0} followers")
    });
    text
}
