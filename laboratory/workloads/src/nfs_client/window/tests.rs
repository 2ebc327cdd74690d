use super::*;

/// Takes actions until one that is no WRITE.
fn writes(window: &mut Window) -> (Vec<Range>, Action) {
    let mut ranges = Vec::new();
    loop {
        match window.next() {
            Action::Write(range) => ranges.push(range),
            other => return (ranges, other),
        }
    }
}

fn range(offset: u64, len: u32) -> Range {
    Range { offset, len }
}

#[test]
fn so_many_writes_are_in_flight_and_a_reply_makes_room() {
    let mut window = Window::new(100, 10, 1_000, 3);
    let (sent, then) = writes(&mut window);
    assert_eq!((sent, then), (vec![range(0, 10), range(10, 10), range(20, 10)], Action::Wait));
    window.written(range(10, 10), 10, 7);
    assert_eq!(writes(&mut window).0, [range(30, 10)]);
}

#[test]
fn at_the_limit_and_at_the_end_it_commits_and_waits() {
    let mut window = Window::new(25, 10, 20, 8);
    let (sent, then) = writes(&mut window);
    assert_eq!((sent.len(), then), (2, Action::Wait));
    window.written(sent[0], 10, 7);
    assert_eq!(window.next(), Action::Wait);
    window.written(sent[1], 10, 7);
    assert_eq!((window.next(), window.next()), (Action::Commit, Action::Wait));
    assert!(window.committed(7));
    let (sent, then) = writes(&mut window);
    assert_eq!((sent.clone(), then), (vec![range(20, 5)], Action::Wait));
    window.written(sent[0], 5, 7);
    assert_eq!(window.next(), Action::Commit);
    assert!(window.committed(7));
    assert_eq!((window.next(), window.resent_bytes()), (Action::Finished, 0));
}

#[test]
fn what_another_verifier_was_given_for_is_sent_again() {
    let mut window = Window::new(20, 10, 100, 8);
    let (sent, _) = writes(&mut window);
    window.written(sent[0], 10, 1);
    window.written(sent[1], 10, 2);
    assert_eq!(window.next(), Action::Commit);
    assert!(!window.committed(2));
    let (again, _) = writes(&mut window);
    assert_eq!(again, [range(0, 10)]);
    window.written(again[0], 10, 2);
    assert_eq!(window.next(), Action::Commit);
    assert!(window.committed(2));
    assert_eq!((window.next(), window.resent_bytes()), (Action::Finished, 10));
}

#[test]
fn what_was_not_written_or_not_answered_is_sent_again() {
    let mut window = Window::new(20, 10, 100, 8);
    let (sent, _) = writes(&mut window);
    window.written(sent[0], 4, 1);
    window.disconnected([sent[1]]);
    assert_eq!(writes(&mut window).0, [range(4, 6), range(10, 10)]);
}
