use super::*;

fn due(holders: &Holders) -> Option<Due> {
    match holders.poll_due(&Context::from_waker(Waker::noop())) {
        Poll::Ready(due) => Some(due),
        Poll::Pending => None,
    }
}

#[test]
fn an_object_is_due_after_its_last_name_and_its_last_holder() {
    let holders = Holders::new();
    assert_eq!(due(&holders), Some(Due::Marks), "an opening reads the marks");
    let (one, two) = (holders.hold(1), holders.hold(1));
    assert!(Arc::ptr_eq(&one, &two));
    holders.unname(1);
    drop(one);
    assert_eq!(due(&holders), None);
    drop(two);
    assert_eq!(due(&holders), Some(Due::Object(1)));
    holders.unname(2);
    assert_eq!(due(&holders), Some(Due::Object(2)), "nobody held it");
    drop(holders.hold(3));
    assert_eq!(due(&holders), None, "it has a name");
    holders.close();
    assert_eq!(due(&holders), Some(Due::Nothing));
}

#[test]
fn objects_beyond_the_queue_are_found_by_their_marks() {
    let holders = Holders::new();
    assert_eq!(due(&holders), Some(Due::Marks));
    for ino in 0..QUEUE_MAX as u64 + 5 {
        holders.unname(ino);
    }
    for ino in 0..QUEUE_MAX as u64 {
        assert_eq!(due(&holders), Some(Due::Object(ino)));
    }
    assert_eq!(due(&holders), Some(Due::Marks));
    let held = holders.hold(QUEUE_MAX as u64);
    (0..=QUEUE_MAX as u64 + 1).for_each(|ino| holders.found_mark(ino));
    assert_eq!(due(&holders), Some(Due::Object(QUEUE_MAX as u64 + 1)), "the others are being reaped, and one is held");
    assert_eq!(due(&holders), None);
    holders.reaped(7);
    holders.found_mark(7);
    assert_eq!(due(&holders), Some(Due::Object(7)));
    drop(held);
}
