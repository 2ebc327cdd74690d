//! Memory behind the pages from the start. The test is alone in its program, since it looks at the program's memory.

use afflux::Cache;

const MEMORY_BYTES: u64 = 128 << 20;

#[test]
fn a_prefaulted_cache_has_its_memory_and_another_one_has_not() {
    let resident_bytes = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    };
    let grown = |prefault: bool| {
        let before = resident_bytes();
        let cache = Cache::builder().memory(MEMORY_BYTES).prefault(prefault).build().unwrap();
        let grown = resident_bytes().saturating_sub(before);
        drop(cache);
        grown
    };
    let (without, with) = (grown(false), grown(true));
    assert!(without < MEMORY_BYTES / 2, "{without}");
    assert!(with >= MEMORY_BYTES, "{with}");
}
