use super::*;

fn due(held_nodes: &HeldNodes) -> Option<Due> {
    match held_nodes.poll_due(&Context::from_waker(Waker::noop())) {
        Poll::Ready(due) => Some(due),
        Poll::Pending => None,
    }
}

#[test]
fn an_object_is_due_after_its_last_name_and_its_last_hold() {
    let held_nodes = HeldNodes::new();
    assert_eq!(due(&held_nodes), Some(Due::Marks), "an opening reads the marks");
    let (one, two) = (held_nodes.hold(1), held_nodes.hold(1));
    assert!(Arc::ptr_eq(&one, &two));
    held_nodes.unname(1);
    drop(one);
    assert_eq!(due(&held_nodes), None);
    drop(two);
    assert_eq!(due(&held_nodes), Some(Due::Object(1)));
    held_nodes.unname(2);
    assert_eq!(due(&held_nodes), Some(Due::Object(2)), "nobody held it");
    drop(held_nodes.hold(3));
    assert_eq!(due(&held_nodes), None, "it has a name");
    held_nodes.close();
    assert_eq!(due(&held_nodes), Some(Due::Nothing));
}

#[test]
fn objects_beyond_the_queue_are_found_by_their_marks() {
    let held_nodes = HeldNodes::new();
    assert_eq!(due(&held_nodes), Some(Due::Marks));
    for ino in 0..QUEUE_MAX as u64 + 5 {
        held_nodes.unname(ino);
    }
    for ino in 0..QUEUE_MAX as u64 {
        assert_eq!(due(&held_nodes), Some(Due::Object(ino)));
    }
    assert_eq!(due(&held_nodes), Some(Due::Marks));
    let held = held_nodes.hold(QUEUE_MAX as u64);
    (0..=QUEUE_MAX as u64 + 1).for_each(|ino| held_nodes.found_mark(ino));
    assert_eq!(
        due(&held_nodes),
        Some(Due::Object(QUEUE_MAX as u64 + 1)),
        "the others are being reaped, and one is held"
    );
    assert_eq!(due(&held_nodes), None);
    held_nodes.reaped(7);
    held_nodes.found_mark(7);
    assert_eq!(due(&held_nodes), Some(Due::Object(7)));
    drop(held);
}
