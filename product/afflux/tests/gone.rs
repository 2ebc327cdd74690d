//! A cache leaves nothing behind. This is the only test of its process, since it measures the process.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use afflux::Cache;
use afflux_scratch::eventually;

const MEMORY: u64 = 64 << 20;

fn status(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn use_a_cache(place: &std::path::Path, closed: bool) {
    let cache = Cache::builder().memory(MEMORY).reactors(2).build().unwrap();
    let file = cache.create(place.join("file")).unwrap();
    let bytes = vec![1; 1 << 20];
    for at in 0..60 {
        file.write_at(&bytes, at << 20).unwrap();
    }
    // Blocking reads of uncached bytes give this thread a ring of its own.
    file.sync_data().unwrap();
    cache.drop_clean_pages();
    file.read_at(&mut [0; 4096], 0).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| file.read_at(&mut [0; 4096], 30 << 20).unwrap());
    });
    file.write_at(&bytes, 0).unwrap();
    if closed {
        cache.close().unwrap();
    }
}

#[test]
#[cfg_attr(afflux_sanitizer = "address", ignore = "the sanitizer keeps freed memory for a while")]
fn five_caches_in_a_row_leave_memory_threads_and_descriptors_as_they_were() {
    let place = tempfile::tempdir().unwrap();
    // The first uses warm up: some resources of the process stay, and the allocator keeps some memory.
    (0..3).for_each(|number| use_a_cache(place.path(), number == 1));
    let (memory, threads, fds) = (status("VmRSS:"), status("Threads:"), descriptors());
    for number in 0..5 {
        use_a_cache(place.path(), number % 2 == 0);
    }
    // A thread that has ended is counted until the kernel has removed it.
    // One of the first caches may still have been counted, too.
    eventually("there are no more threads than before these five", || status("Threads:") <= threads);
    assert_eq!(descriptors(), fds);
    let grown_kib = status("VmRSS:").saturating_sub(memory);
    assert!(grown_kib < 3 << 10, "{grown_kib} KiB more than before these five");
    assert!(memory < MEMORY / 2 / 1024, "{memory} KiB are left of the first caches");
}
