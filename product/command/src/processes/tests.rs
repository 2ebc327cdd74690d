mod port_owner;

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

#[test]
fn a_server_of_another_user_is_told_from_other_programs() {
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "neighbours").unwrap();
    let process = |pid: &str, words: &str| {
        fs::create_dir(scratch.path().join(pid)).unwrap();
        fs::write(scratch.path().join(pid).join("cmdline"), words.replace(' ', "\0")).unwrap();
    };
    process("12", "/usr/bin/afflux serve /srv ");
    process("7", "afflux serve /srv ");
    process("8", "afflux stat ");
    process("9", "vi afflux serve ");
    process("self", "afflux serve ");
    let uid = fs::metadata(scratch.path()).unwrap().uid();
    assert_eq!(neighbours(scratch.path(), uid), [], "this user's servers are found by their sockets");
    let found = neighbours(scratch.path(), uid + 1);
    assert_eq!(found, [Neighbour { pid: 7, uid }, Neighbour { pid: 12, uid }]);
}
