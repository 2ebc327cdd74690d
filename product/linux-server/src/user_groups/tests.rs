use std::process::Command;

use afflux_linux_device::{IoChoice, Reactors};

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

#[test]
fn a_name_of_a_user_or_a_group_has_the_hosts_number() {
    let users = UsersOfHost::new();
    let reactors = Reactors::start(1, IoChoice::Syscalls).unwrap();
    let number = |kind, name| reactors.platform().block_on(users.number_of(kind, name));
    let daemon = Command::new("id").args(["-u", "daemon"]).output().unwrap();
    let daemon = String::from_utf8(daemon.stdout).unwrap().trim().parse().ok();
    assert!(daemon.is_some());
    assert_eq!(number(OwnerKind::User, "daemon"), daemon);
    assert_eq!(number(OwnerKind::Group, "root"), Some(0));
    assert_eq!(number(OwnerKind::User, "nobody here has this name"), None);
    assert_eq!(users.answers().numbers.len(), 3);
    // The second answer comes from memory.
    users.answers().numbers.insert((OwnerKind::User, "daemon".into()), Some(77));
    assert_eq!(number(OwnerKind::User, "daemon"), Some(77));
}

#[test]
fn answers_about_names_are_bounded_and_forgotten() {
    let mut answers = Answers::default();
    let note = |answers: &mut Answers, age, at: usize| {
        answers.note_number(age, OwnerKind::User, at.to_string().into(), None);
    };
    (0..ANSWERS_MAX).for_each(|at| note(&mut answers, 0, at));
    assert_eq!(answers.numbers.len(), ANSWERS_MAX);
    note(&mut answers, 0, ANSWERS_MAX);
    assert_eq!(answers.numbers.len(), 1);
    note(&mut answers, 1, 0);
    assert_eq!(answers.numbers.len(), 1);
}
