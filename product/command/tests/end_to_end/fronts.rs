//! What holds for a caller holds for each: for clients of version 3, 4.1 and 4.2 of NFS, and for programs on a mount.
//!
//! A property is a function of the front end. The table at the end has all of them, and the front ends that cannot have
//! one, with the reason.

use std::fs::{self, File};
use std::panic::catch_unwind;
use std::thread;

use afflux_nfs_client::sessions::{Compound, Session};
use rustix::fs::{FlockOperation, fcntl_lock};
use serde_json::Value;

use crate::explaining::delays_of;
use crate::front_ends::{BOTH, Caller, FrontEnd, READ, Refused, Site, Used, opened};
use crate::hanging::{Frozen, NO_RESERVE, waits_for_the_disk};
use crate::live::{get, logging};
use crate::mounted::can_mount;
use crate::scratch::{Bytes, Mount, Scratch, can_be_several_users};
use crate::server::{LAZY, afflux, eventually, run, text};

const BYTES: usize = 5_000;
/// The range that is read.
const RANGE: (u64, usize) = (1_000, 3_000);

// Errors by Linux's numbers, and statuses of NFS that Linux has no number for.
const NOT_FOUND: Refused = Err(2);
const DENIED: Refused = Err(13);
const BUSY: Refused = Err(16);
const EXISTS: Refused = Err(17);
const NO_SPACE: Refused = Err(28);
const READ_ONLY: Refused = Err(30);
const TOO_LONG: Refused = Err(36);
const NOT_EMPTY: Refused = Err(39);
const TRY_AGAIN: Refused = Err(11);
const JUKEBOX: Refused = Err(10_008);
const LOCK_DENIED: Refused = Err(10_010);
const GRACE: Refused = Err(10_013);
const SHARE_DENIED: Refused = Err(10_015);

/// Users of tests that need several.
const OWNER: Option<u32> = Some(4_001);
const OTHER: Option<u32> = Some(4_002);

/// Writes bytes of a file, makes them durable, and reads some of them.
fn move_bytes(caller: &mut Caller, file: &Used) {
    caller.write(file, 0, &[7; BYTES], false).unwrap();
    caller.sync(file).unwrap();
    assert_eq!(caller.read(file, RANGE.0, RANGE.1).unwrap().len(), RANGE.1);
}

/// The calls that the report counts: all, those that read, write and sync.
fn answered(report: &Value) -> [u64; 4] {
    ["calls", "reads", "writes", "syncs"].map(|what| {
        let of = |place: &Value| place[what].as_u64().unwrap();
        of(&report["nfs"]["answered"]) + of(&report["mount_answered"])
    })
}

fn names_and_bytes_are_counted(front_end: FrontEnd) {
    let site = Site::new(&[]);
    let mut caller = site.caller(front_end);
    let counted = || ["names_changed", "files_made"].map(|counter| site.server().counter(counter));
    let calls = answered(&site.server().stat());
    let file = caller.create("file").unwrap();
    caller.make_directory("directory").unwrap();
    caller.link("file", "link").unwrap();
    caller.rename("link", "moved").unwrap();
    caller.remove("moved").unwrap();
    assert_eq!(counted(), [5, 1]);
    move_bytes(&mut caller, &file);
    let now = answered(&site.server().stat());
    assert!(now[0] >= calls[0] + 8, "a call is counted as one");
    assert_eq!([1, 2, 3].map(|at| now[at] - calls[at]), [1, 1, 1], "read, written, synced");
    assert_eq!(counted(), [5, 1], "bytes are no names");
    site.stop();
}

fn pages_are_counted_once(front_end: FrontEnd) {
    const PAGES: u64 = 16;
    let site = Site::new(&LAZY);
    let mut caller = site.caller(front_end);
    let file = caller.create("file").unwrap();
    let counted = |counters: &[&str]| counters.iter().map(|counter| site.server().counter(counter)).sum::<u64>();
    let dirtied = counted(&["nr_dirtied"]);
    caller.write(&file, 0, &[7; PAGES as usize * 4096], false).unwrap();
    assert_eq!(counted(&["nr_dirtied"]) - dirtied, PAGES);
    let pages = ["read_hit_pages", "read_miss_pages"];
    let read = counted(&pages);
    caller.read(&file, 0, PAGES as usize * 4096).unwrap();
    assert_eq!(counted(&pages) - read, PAGES);
    site.stop();
}

/// The sum over all labels of a family of the figures for Prometheus.
fn figure(site: &Site, family: &str) -> f64 {
    let answer = get(site.server().ready["metrics"].as_str().unwrap(), "/metrics");
    let samples = answer.lines().filter_map(|line| line.rsplit_once(' '));
    let of_family = samples.filter(|(series, _)| series.split('{').next() == Some(family));
    of_family.map(|(_, value)| value.parse::<f64>().unwrap()).sum()
}

fn calls_and_errors_are_in_the_figures(front_end: FrontEnd) {
    let site = Site::new(&["--metrics", "127.0.0.1:0"]);
    let mut caller = site.caller(front_end);
    let families = match front_end {
        FrontEnd::Mount => ["afflux_fuse_calls_total", "afflux_fuse_errors_total"],
        _ => ["afflux_nfs_calls_total", "afflux_nfs_errors_total"],
    };
    let now = || families.map(|family| figure(&site, family));
    // A text of the figures is used again for a moment.
    let grown = |before: [f64; 2]| {
        let mut after = before;
        eventually("calls are counted", || {
            after = now();
            after[0] > before[0]
        });
        after
    };
    let before = now();
    caller.create("file").map(drop).unwrap();
    let between = grown(before);
    assert_eq!(caller.create("file").map(drop), EXISTS);
    assert_eq!(caller.remove("absent"), NOT_FOUND);
    let after = grown(between);
    assert!(after[1] > before[1], "errors: {before:?}, {after:?}");
    site.stop();
}

/// The lines of a recording during which the act is done again and again, until it holds each kind of calls.
fn recorded(site: &Site, kinds: &[&str], mut act: impl FnMut()) -> Vec<Value> {
    let trace = site.scratch.path().join("calls.trace");
    let mut lines = Vec::<Value>::new();
    eventually("the calls are recorded", || {
        let mut recording = afflux(site.scratch.path());
        recording.args(["trace", "record", "--for", "300ms", "--control"]).arg(&site.server().control).arg(&trace);
        let mut recording = recording.spawn().unwrap();
        while recording.try_wait().unwrap().is_none() {
            act();
        }
        assert!(recording.wait().unwrap().success());
        let shown = run(site.scratch.path(), &["trace", "show", "--json", trace.to_str().unwrap()]);
        lines = text(&shown).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        kinds.iter().all(|kind| lines.iter().any(|line| line["op"] == *kind))
    });
    assert!(lines.iter().all(|line| line["file"] == lines[0]["file"]), "there is one file");
    lines
}

/// The operations of a recording come in rounds of these, from the first whole round on.
fn assert_rounds(lines: &[Value], round: &[&str]) {
    let operations: Vec<_> = lines.iter().map(|line| line["op"].as_str().unwrap()).collect();
    let first = operations.iter().position(|operation| *operation == round[0]).unwrap();
    operations[first..].chunks_exact(round.len()).for_each(|found| assert_eq!(found, round, "each once, in order"));
}

fn reads_writes_and_syncs_are_recorded(front_end: FrontEnd) {
    let site = Site::new(&[]);
    let mut caller = site.caller(front_end);
    let file = caller.create("file").unwrap();
    let round = ["write", "sync", "read"];
    let lines = recorded(&site, &round, || move_bytes(&mut caller, &file));
    for line in &lines {
        let range = (line["offset"].as_u64().unwrap(), line["bytes"].as_u64().unwrap() as usize);
        let wanted = match line["op"].as_str().unwrap() {
            "read" => RANGE,
            "write" => (0, BYTES),
            _ => (0, 0),
        };
        assert_eq!(range, wanted, "{line}");
    }
    assert_rounds(&lines, &round);
    site.stop();
}

fn a_durable_write_is_recorded_with_its_sync(front_end: FrontEnd) {
    let site = Site::new(&[]);
    let mut caller = site.caller(front_end);
    let file = caller.create("file").unwrap();
    let round = ["write", "sync"];
    let lines = recorded(&site, &round, || caller.write(&file, 0, &[7; BYTES], true).unwrap());
    assert_rounds(&lines, &round);
    site.stop();
}

fn a_sync_that_waits_is_told_with_its_user(front_end: FrontEnd) {
    if !can_be_several_users() {
        return;
    }
    let site = Site::new(&LAZY);
    let mut caller = site.caller_of(front_end, OWNER);
    let file = caller.create("file").unwrap();
    caller.write(&file, 0, &[7; BYTES], false).unwrap();
    caller.sync(&file).unwrap();
    let waits = |user| delays_of(site.server(), user)["sync"]["count"].as_u64().unwrap_or(0);
    assert_eq!((waits(OWNER), waits(OTHER)), (1, 0));
    let mut other = site.caller_of(front_end, OTHER);
    let file = other.create("other's file").unwrap();
    other.write(&file, 0, &[7; BYTES], true).unwrap();
    assert_eq!((waits(OWNER), waits(OTHER)), (1, 1), "a durable write waits, too");
    let client = delays_of(site.server(), OTHER)["client"].as_str().unwrap().to_owned();
    let wanted = match front_end {
        FrontEnd::Mount => format!("process {}", std::process::id()),
        _ => "127.0.0.1".to_owned(),
    };
    assert_eq!(client, wanted);
    site.stop();
}

/// On a disk that makes names durable at once, so that the pace of the machine's own disk decides nothing.
fn many_small_files_bring_one_line_about_async_metadata(front_end: FrontEnd) {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let Some(disk) = Mount::tmpfs(&data, 64 << 20) else { return };
    let site = Site::with(scratch, data, Some(disk), |scratch, data, mount| logging(scratch, data, false, mount));
    let log = || fs::read_to_string(site.scratch.path().join("log")).unwrap();
    let mut caller = site.caller(front_end);
    let mut files = 0;
    let mut create = |count: u64| {
        for _ in 0..count {
            files += 1;
            let file = caller.create(&format!("small-{files}")).unwrap();
            caller.close(file);
        }
    };
    eventually("the flag is mentioned", || {
        create(100);
        log().contains("--async-metadata")
    });
    create(500);
    drop(caller);
    let path = site.scratch.path().join("log");
    site.server().ask(&["drain"]);
    let log = fs::read_to_string(path).unwrap();
    site.stop();
    assert_eq!(log.matches("--async-metadata").count(), 1, "{log}");
    assert!(log.contains(" small files within 10 s"), "{log}");
}

fn a_disk_that_hangs_holds_up_no_call_for_another(front_end: FrontEnd) {
    /// More than a mount has threads.
    const WAITING: usize = 6;
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let slow = scratch.directory("data/slow");
    let Some(disk) = Mount::ext4(&scratch.path().join("image"), &slow, 64 << 20) else { return };
    let name = disk.device().trim_start_matches("/dev/").to_owned();
    let site = Site::over(scratch, data, Some(disk), &[&LAZY[..], &["--set", NO_RESERVE]].concat());
    let written = |number: usize| {
        let mut caller = site.caller(front_end);
        let file = caller.create(&format!("slow/{number}")).unwrap();
        caller.write(&file, 0, &[7; BYTES], false).unwrap();
        (caller, file)
    };
    let callers: Vec<_> = (0..WAITING).map(written).collect();
    let Some(frozen) = Frozen::freeze(&slow) else { return };
    let sync = |(mut caller, file): (Caller, Used)| thread::spawn(move || caller.sync(&file));
    let syncs: Vec<_> = callers.into_iter().map(sync).collect();
    eventually("the disk is asked", || waits_for_the_disk(site.server(), &name));
    for other in site.front_ends() {
        let mut caller = site.caller(other);
        let file = caller.create(&format!("beside-{other:?}")).unwrap();
        move_bytes(&mut caller, &file);
    }
    assert!(!syncs.iter().any(thread::JoinHandle::is_finished), "the disk hangs");
    drop(frozen);
    syncs.into_iter().for_each(|sync| assert_eq!(sync.join().unwrap(), Ok(())));
    site.stop();
}

/// Opens a file, reads it and writes to it.
fn used(caller: &mut Caller, name: &str) -> Refused {
    let file = caller.open(name, BOTH)?;
    let done = caller.read(&file, 0, 1).and_then(|_| caller.write(&file, 0, b"used", false));
    caller.close(file);
    done
}

/// A file of a user with these bits.
fn file_of_owner(site: &Site, front_end: FrontEnd, bits: u32) -> Caller {
    let mut owner = site.caller_of(front_end, OWNER);
    let file = owner.create("file").unwrap();
    owner.write(&file, 0, b"bytes", false).unwrap();
    owner.close(file);
    owner.set_mode("file", bits).unwrap();
    owner
}

/// The owner takes the rights by each front end.
fn rights_that_are_taken_are_gone(front_end: FrontEnd) {
    if !can_be_several_users() {
        return;
    }
    let site = Site::new(&[]);
    drop(file_of_owner(&site, front_end, 0o666));
    let mut other = site.caller_of(front_end, OTHER);
    for by in site.front_ends() {
        let mut owner = site.caller_of(by, OWNER);
        owner.set_mode("file", 0o666).unwrap();
        assert_eq!(used(&mut other, "file"), Ok(()), "given by {by:?}");
        owner.set_mode("file", 0o600).unwrap();
        assert_eq!(used(&mut other, "file"), DENIED, "taken by {by:?}");
    }
    site.stop();
}

fn an_open_keeps_its_rights(front_end: FrontEnd) {
    if !can_be_several_users() {
        return;
    }
    let site = Site::new(&[]);
    let mut owner = file_of_owner(&site, front_end, 0o666);
    let mut other = site.caller_of(front_end, OTHER);
    let file = other.open("file", BOTH).unwrap();
    owner.set_mode("file", 0o600).unwrap();
    assert_eq!(used(&mut other, "file"), DENIED);
    other.write(&file, 0, b"after", true).unwrap();
    assert_eq!(other.read(&file, 0, 100).unwrap(), b"after");
    site.stop();
}

/// A client that denies writing to others is missing after a kill, and comes back.
fn what_an_open_denies_waits_in_grace_and_is_refused_after_it(front_end: FrontEnd) {
    const DENIES_WRITING: (u32, u32) = (BOTH, 2);
    let (waits, refused) = match front_end {
        FrontEnd::V3 => (JUKEBOX, DENIED),
        FrontEnd::V41 | FrontEnd::V42 => (GRACE, SHARE_DENIED),
        FrontEnd::Mount => (BUSY, BUSY),
    };
    let site = Site::new(&[]);
    let mut holder = Session::begin(site.connect(), b"holder", 1).unwrap();
    let opens = Compound::default().put_root().open(DENIES_WRITING, b"owner", b"file", true).get_handle();
    let (file, _) = opened(&holder.must(opens).unwrap());
    let site = site.after_a_kill();
    let mut caller = site.caller(front_end);
    assert_eq!(used(&mut caller, "file"), waits);
    let mut holder = Session::begin_reclaiming(site.connect(), b"holder", 1).unwrap();
    let reclaims = Compound::default().put(&file).reclaim_open(DENIES_WRITING, b"owner").get_handle();
    let (file, stateid) = opened(&holder.must(reclaims.reclaim_complete()).unwrap());
    assert_eq!(used(&mut caller, "file"), refused);
    holder.must(Compound::default().put(&file).close(stateid)).unwrap();
    assert_eq!(used(&mut caller, "file"), Ok(()));
    site.stop();
}

fn a_write_that_failed_fails_each_sync_until_it_is_written(front_end: FrontEnd) {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let Some(disk) = Mount::tmpfs(&data, 4 << 20) else { return };
    let site = Site::over(scratch, data, Some(disk), &[&LAZY[..], &["--set", NO_RESERVE]].concat());
    let mut caller = site.caller(front_end);
    let file = caller.create("file").unwrap();
    let bytes = Bytes::new(1).vec(1 << 20);
    caller.write(&file, 0, &bytes, false).unwrap();
    // Another program takes the free space.
    let filler = site.data.join("filler");
    let _ = fs::write(&filler, vec![1; 4 << 20]);
    assert_eq!([caller.sync(&file), caller.sync(&file)], [NO_SPACE, NO_SPACE]);
    fs::remove_file(filler).unwrap();
    assert_eq!([caller.sync(&file), caller.sync(&file)], [Ok(()), Ok(())]);
    assert!(fs::read(site.data.join("file")).unwrap() == bytes);
    site.stop();
}

fn bytes_that_others_change_are_seen(front_end: FrontEnd) {
    let site = Site::new(&[]);
    let mut caller = site.caller(front_end);
    let file = caller.create("file").unwrap();
    for (at, by) in site.front_ends().enumerate() {
        let mut other = site.caller(by);
        let changed = other.open("file", BOTH).unwrap();
        let bytes = Bytes::new(at as u64).vec(4000 + at);
        other.write(&changed, 0, &bytes, false).unwrap();
        assert!(caller.read(&file, 0, BYTES).unwrap() == bytes, "by {by:?}");
        other.set_size(&changed, 10).unwrap();
        assert_eq!(caller.read(&file, 0, BYTES).unwrap(), bytes[..10], "by {by:?}");
        caller.write(&file, 5, b"an answer", false).unwrap();
        assert_eq!(other.read(&changed, 5, BYTES).unwrap(), b"an answer", "by {by:?}");
    }
    site.stop();
}

/// A mount's kernel takes names for right for an hour unless it is told, and it is told in a moment.
fn names_that_others_change_are_seen(front_end: FrontEnd) {
    let site = Site::new(&["--set", "attributes_idle_centisecs=360000"]);
    let mut caller = site.caller(front_end);
    let mut assert_found = |name: &str, wanted: Refused, what: &str| match front_end {
        FrontEnd::Mount => eventually(what, || caller.find(name) == wanted),
        _ => assert_eq!(caller.find(name), wanted, "{what}"),
    };
    for by in site.front_ends() {
        let mut other = site.caller(by);
        assert_found("name", NOT_FOUND, "nothing is there");
        let file = other.create("name").unwrap();
        assert_found("name", Ok(()), &format!("made by {by:?}"));
        other.rename("name", "moved").unwrap();
        assert_found("name", NOT_FOUND, &format!("moved by {by:?}"));
        assert_found("moved", Ok(()), &format!("moved by {by:?}"));
        other.remove("moved").unwrap();
        assert_found("moved", NOT_FOUND, &format!("removed by {by:?}"));
        other.close(file);
    }
    site.stop();
}

fn a_file_without_a_name_lives_while_it_is_open(front_end: FrontEnd) {
    let site = Site::new(&[]);
    let mut caller = site.caller(front_end);
    for by in site.front_ends() {
        let file = caller.create("file").unwrap();
        caller.write(&file, 0, b"before", false).unwrap();
        site.caller(by).remove("file").unwrap();
        assert_eq!(caller.read(&file, 0, 100).unwrap(), b"before", "removed by {by:?}");
        caller.write(&file, 0, b"behind", true).unwrap();
        assert_eq!(caller.read(&file, 0, 100).unwrap(), b"behind", "removed by {by:?}");
        caller.close(file);
        assert_eq!(caller.find("file"), NOT_FOUND);
    }
    site.stop();
}

fn a_file_that_is_moved_stays_the_same(front_end: FrontEnd) {
    let site = Site::new(&[]);
    let mut caller = site.caller(front_end);
    for by in site.front_ends() {
        let file = caller.create("file").unwrap();
        let mut other = site.caller(by);
        other.rename("file", "moved").unwrap();
        caller.write(&file, 0, b"by the old name", false).unwrap();
        let moved = other.open("moved", READ).unwrap();
        assert_eq!(other.read(&moved, 0, 100).unwrap(), b"by the old name", "moved by {by:?}");
        other.close(moved);
        caller.close(file);
        other.remove("moved").unwrap();
    }
    site.stop();
}

/// The error of a lock that another has.
fn lock_refused(front_end: FrontEnd) -> Refused {
    if front_end == FrontEnd::Mount { TRY_AGAIN } else { LOCK_DENIED }
}

fn locks_exclude_all_others(front_end: FrontEnd) {
    let site = Site::new(&[]);
    let mut caller = site.caller(front_end);
    let file = caller.create("file").unwrap();
    caller.close(file);
    // This process is one program on the mount.
    let is_other =
        |other: &FrontEnd| *other != FrontEnd::V3 && (*other, front_end) != (FrontEnd::Mount, FrontEnd::Mount);
    for by in site.front_ends().filter(is_other) {
        let mut other = site.caller(by);
        let (mine, others) = (caller.open("file", BOTH).unwrap(), other.open("file", BOTH).unwrap());
        caller.lock(&mine).unwrap();
        assert_eq!(other.lock(&others), lock_refused(by), "{by:?}");
        caller.close(mine);
        // The kernel tells of a program's close a moment after it.
        eventually("the lock is free", || other.lock(&others) == Ok(()));
        other.close(others);
    }
    site.stop();
}

fn posix_locks_exclude_programs_of_the_host(front_end: FrontEnd) {
    let site = Site::new(&["--posix-locks"]);
    let mut caller = site.caller(front_end);
    let file = caller.create("file").unwrap();
    let program = File::options().read(true).write(true).open(site.data.join("file")).unwrap();
    let has_locked = || fcntl_lock(&program, FlockOperation::NonBlockingLockExclusive).is_ok();
    caller.lock(&file).unwrap();
    assert!(!has_locked());
    caller.close(file);
    eventually("the lock is free", has_locked);
    let file = caller.open("file", BOTH).unwrap();
    assert_eq!(caller.lock(&file), lock_refused(front_end));
    site.stop();
}

fn a_durable_write_is_on_the_disk(front_end: FrontEnd) {
    let site = Site::new(&LAZY);
    let mut caller = site.caller(front_end);
    let file = caller.create("file").unwrap();
    let on_disk = || fs::read(site.data.join("file")).unwrap();
    let [loose, durable] = [1, 2].map(|seed| Bytes::new(seed).vec(BYTES));
    caller.write(&file, 0, &loose, false).unwrap();
    assert!(on_disk() != loose, "nothing else writes it");
    caller.write(&file, 0, &durable, true).unwrap();
    assert!(on_disk() == durable);
    site.stop();
}

fn a_sync_waits_for_the_disk(front_end: FrontEnd) {
    let site = Site::new(&LAZY);
    let mut caller = site.caller(front_end);
    let file = caller.create("file").unwrap();
    let on_disk = || fs::read(site.data.join("file")).unwrap();
    let bytes = Bytes::new(1).vec(BYTES);
    // Others' bytes are durable, too.
    let mut others: Vec<_> = site.front_ends().map(|other| site.caller(other)).collect();
    for (at, other) in others.iter_mut().enumerate() {
        let used = other.open("file", BOTH).unwrap();
        let piece = BYTES / 4;
        other.write(&used, (at * piece) as u64, &bytes[at * piece..(at + 1) * piece], false).unwrap();
    }
    assert!(on_disk() != bytes[..others.len() * BYTES / 4], "nothing else writes it");
    caller.sync(&file).unwrap();
    assert!(on_disk() == bytes[..others.len() * BYTES / 4]);
    site.stop();
}

fn refusals_have_the_same_reason(front_end: FrontEnd) {
    let site = Site::new(&[]);
    let mut caller = site.caller(front_end);
    let file = caller.create("file").unwrap();
    caller.make_directory("directory").unwrap();
    let inner = caller.create("directory/inner").unwrap();
    assert_eq!(caller.create("file").map(drop), EXISTS);
    assert_eq!(caller.make_directory("file"), EXISTS);
    assert_eq!(caller.link("file", "directory/inner"), EXISTS);
    assert_eq!(caller.open("absent", BOTH).map(drop), NOT_FOUND);
    assert_eq!(caller.create("absent/file").map(drop), NOT_FOUND);
    assert_eq!(caller.rename("absent", "name"), NOT_FOUND);
    assert_eq!(caller.remove("absent"), NOT_FOUND);
    assert_eq!(caller.remove_directory("directory"), NOT_EMPTY);
    let long = "n".repeat(256);
    assert_eq!(caller.create(&long).map(drop), TOO_LONG);
    assert_eq!(caller.rename("file", &long), TOO_LONG);
    assert_eq!(caller.find(&long), TOO_LONG);
    [file, inner].into_iter().for_each(|file| caller.close(file));
    site.stop();
}

fn a_server_that_only_reads_refuses_changes(front_end: FrontEnd) {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    fs::write(data.join("file"), "bytes").unwrap();
    let site = Site::over(scratch, data, None, &["--read-only"]);
    let mut caller = site.caller(front_end);
    let file = caller.open("file", READ).unwrap();
    assert_eq!(caller.read(&file, 0, 100).unwrap(), b"bytes");
    assert_eq!(used(&mut caller, "file"), READ_ONLY);
    assert_eq!(caller.create("new").map(drop), READ_ONLY);
    assert_eq!(caller.make_directory("new"), READ_ONLY);
    assert_eq!(caller.link("file", "new"), READ_ONLY);
    assert_eq!(caller.rename("file", "new"), READ_ONLY);
    assert_eq!(caller.remove("file"), READ_ONLY);
    assert_eq!(caller.set_mode("file", 0o600), READ_ONLY);
    site.stop();
}

/// Checks a property of each front end that can have it, and names all that lack it.
fn check_each(lacking: &[(FrontEnd, &str)], property: fn(FrontEnd)) {
    let may_have = |front_end: &FrontEnd| {
        let lacks = lacking.iter().any(|(lacks, _)| lacks == front_end);
        !lacks && (*front_end != FrontEnd::Mount || can_mount())
    };
    let has = |front_end: &FrontEnd| catch_unwind(|| property(*front_end)).is_ok();
    let failed: Vec<_> = FrontEnd::ALL.into_iter().filter(may_have).filter(|front_end| !has(front_end)).collect();
    assert!(failed.is_empty(), "not for {failed:?}");
}

/// A test for each property: `property;`, or `property, but not FRONT_END: "reason";`.
macro_rules! properties {
    ($($property:ident $(, but not $front_end:ident: $why:literal)*;)*) => {
        mod each_front_end {
            $(#[test]
            fn $property() {
                super::check_each(&[$((super::FrontEnd::$front_end, $why)),*], super::$property);
            })*
        }
    };
}

properties! {
    names_and_bytes_are_counted;
    pages_are_counted_once;
    calls_and_errors_are_in_the_figures;
    reads_writes_and_syncs_are_recorded;
    a_durable_write_is_recorded_with_its_sync;
    a_sync_that_waits_is_told_with_its_user;
    many_small_files_bring_one_line_about_async_metadata;
    a_disk_that_hangs_holds_up_no_call_for_another;
    rights_that_are_taken_are_gone;
    an_open_keeps_its_rights, but not V3: "it has no opens: each call is asked for its rights";
    what_an_open_denies_waits_in_grace_and_is_refused_after_it;
    a_write_that_failed_fails_each_sync_until_it_is_written;
    bytes_that_others_change_are_seen;
    names_that_others_change_are_seen;
    a_file_without_a_name_lives_while_it_is_open, but not V3: "it has no opens: its clients rename such files";
    a_file_that_is_moved_stays_the_same;
    locks_exclude_all_others, but not V3: "the server has no locks for it";
    posix_locks_exclude_programs_of_the_host, but not V3: "the server has no locks for it";
    a_durable_write_is_on_the_disk;
    a_sync_waits_for_the_disk;
    refusals_have_the_same_reason;
    a_server_that_only_reads_refuses_changes;
}
