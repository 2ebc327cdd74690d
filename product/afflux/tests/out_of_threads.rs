//! A host that refuses new threads while a cache ends.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::os::unix::fs::FileExt;
use std::pin::pin;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use afflux::{Cache, OpenOptions};
use rustix::process::{Resource, Rlimit, setrlimit};

/// Longer than any step here may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The address space of the process.
fn size_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmSize:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn parked() {
    loop {
        std::thread::park();
    }
}

/// Waits until the thread of this name sleeps. Before, it may still need memory for its start.
fn wait_until_it_sleeps(name: &str) {
    let sleeps = |task: std::fs::DirEntry| {
        // A thread that ends meanwhile has no files.
        let text = |file| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        text("comm").trim() == name && text("status").contains("State:\tS")
    };
    let began = Instant::now();
    while !std::fs::read_dir("/proc/self/task").unwrap().any(|task| sleeps(task.unwrap())) {
        assert!(began.elapsed() < PATIENCE, "no thread {name} sleeps");
        std::thread::yield_now();
    }
}

/// From here on the host has no memory for the stack of another thread, which takes 2 MiB and a page. What started
/// threads still need is left.
fn refuse_threads() {
    let most = size_bytes() + (7 << 18);
    setrlimit(Resource::As, Rlimit { current: Some(most), maximum: None }).unwrap();
    // Stacks of ended threads serve again.
    while std::thread::Builder::new().spawn(parked).is_ok() {}
}

/// The thread of an open that nobody waits for drops the last handle. It cannot wait for its own end.
#[test]
fn a_cache_ends_although_the_host_refuses_another_thread() {
    let place = tempfile::tempdir().unwrap();
    let others = Cache::builder().memory(4 << 20).build().unwrap();
    let held = others.create(place.path().join("held")).unwrap();
    let (tell, told) = channel();
    let heard = move |unwritten: &afflux::Unwritten| drop(tell.send(unwritten.clone()));
    let cache = Cache::builder().memory(256 << 20).on_unwritten(heard).build().unwrap();
    let file = cache.create(place.path().join("file")).unwrap();
    // So many bytes that most are dirty when the last handle is dropped.
    let bytes = vec![3; 40 << 20];
    file.write_at(&bytes, 0).unwrap();
    // Later there may be no memory for them.
    let mut found = vec![0; bytes.len()];
    let on_host = std::fs::File::open(place.path().join("file")).unwrap();
    {
        let path = place.path().join("held");
        let mut open = pin!(cache.open_async(path, OpenOptions::new().read(true).write(true)));
        // On its thread, it waits until the other cache gives the file back.
        assert!(matches!(open.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
        wait_until_it_sleeps("afflux-open");
        refuse_threads();
    }
    drop((file, cache));
    drop((held, others));
    let began = Instant::now();
    let mut are_written = || on_host.read_exact_at(&mut found, 0).is_ok() && found == bytes;
    while !are_written() && told.try_recv().is_err() {
        assert!(began.elapsed() < PATIENCE, "the bytes are neither written nor reported");
        std::thread::yield_now();
    }
}
