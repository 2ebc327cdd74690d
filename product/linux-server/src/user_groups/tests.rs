use std::process::Command;

use super::*;

#[test]
fn a_user_has_the_groups_that_the_host_lists() {
    let users = UsersOfHost::new();
    assert_eq!(users.find(0), None, "nobody has asked");
    futures_util::future::FutureExt::now_or_never(users.look_up(0));
    afflux_scratch::eventually("the host answers", || users.find(0).is_some());
    let root = users.find(0).unwrap();
    let listed = Command::new("id").args(["-G", "root"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let mut expected: Vec<u32> = listed.split_whitespace().map(|group| group.parse().unwrap()).collect();
    let mut found: Vec<u32> = root.gid.into_iter().chain(root.further).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(groups_of(u32::MAX - 7), UserGroups::default(), "no such user");
}

#[test]
fn answers_are_bounded_and_forgotten() {
    let mut answers = Answers::default();
    let of = |gid| UserGroups { gid: Some(gid), further: vec![1] };
    (0..ANSWERS_MAX as u32).for_each(|uid| answers.note(0, uid, of(uid)));
    assert_eq!((answers.find(0, 7), answers.of.len()), (Some(of(7)), ANSWERS_MAX));
    answers.note(0, 100_000, of(1));
    assert_eq!((answers.find(0, 7), answers.find(0, 100_000)), (None, Some(of(1))));
    assert_eq!(answers.find(1, 100_000), None, "it is old");
    answers.note(1, 8, of(2));
    assert_eq!((answers.of.len(), answers.find(1, 8)), (1, Some(of(2))));
}
