use std::fs;

use super::*;

#[test]
fn what_is_given_up_is_gone_for_the_thread_and_those_it_starts() {
    let held = || {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let row = |row: &str| status.lines().find_map(|line| line.strip_prefix(row)).unwrap().trim().to_owned();
        let set = |name| u64::from_str_radix(&row(name), 16).unwrap();
        (set("CapEff:"), set("CapPrm:"), row("NoNewPrivs:"), row("Groups:"))
    };
    let before = held();
    let acts = may_act_as_others();
    // On a thread of its own: the other threads retain their privileges.
    let after = std::thread::spawn(move || {
        give_up_privileges().unwrap();
        let after = held();
        assert_eq!(std::thread::spawn(held).join().unwrap(), after);
        assert_eq!(may_act_as_others(), acts);
        assert!(capabilities(None).unwrap().effective.difference(NEEDED).is_empty());
        after
    });
    let after = after.join().unwrap();
    assert_eq!((after.0, after.1), (before.0 & NEEDED.bits(), before.1 & NEEDED.bits()));
    assert_eq!(after.2, "1");
    if acts {
        assert_eq!(after.3, "");
    }
    assert_eq!(held(), before);
}
