use super::*;

const USERS: &str = "\
root:x:0:0:root:/root:/bin/bash
broken line
mary:x:1000:100::/home/mary:/bin/sh
john:x:1001:no number::/:/bin/sh
jo:x:1002:102::/:/bin/sh
";
const GROUPS: &str = "\
users:x:100:mary
audio:x:29:mary,jo
video:*:44:john,jon
broken
disk:x:many:mary
staff:x:50:jo,mary
";

#[test]
fn a_user_has_the_groups_that_list_it() {
    assert_eq!(groups_in(1000, USERS, GROUPS), (100, vec![29, 50]));
    assert_eq!(groups_in(1002, USERS, GROUPS), (102, vec![29, 50]), "a part of another's name is nobody's");
    assert_eq!(groups_in(0, USERS, GROUPS), (0, vec![]));
    for unknown in [1001, 4711] {
        assert_eq!(groups_in(unknown, USERS, GROUPS), (NO_GROUP, vec![]));
    }
    assert_eq!(groups_of(0).0, 0, "root is in the files of every host");
}

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
