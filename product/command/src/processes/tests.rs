use super::*;

#[test]
fn a_process_holds_its_files_until_its_last_thread_has_ended() {
    let stat = |state, threads| format!("7 (a ) b) {state} 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 {threads} 0 99 0 0");
    for (state, threads, ended) in [('S', 3, false), ('S', 1, false), ('Z', 3, false), ('Z', 1, true), ('X', 0, true)] {
        assert_eq!(has_nothing_open(&stat(state, threads)), ended, "{state} with {threads} threads");
    }
    assert!(has_nothing_open(""), "it is gone");
    assert!(!has_ended(std::process::id()));
    let own = fs::read_to_string("/proc/self/stat").unwrap();
    let threads = own.rsplit_once(") ").unwrap().1.split(' ').nth(THREADS).unwrap();
    assert!(threads.parse::<u32>().unwrap() >= 2, "the main thread and this one: {own}");
}
