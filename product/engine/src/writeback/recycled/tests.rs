use super::*;

#[test]
fn an_answer_serves_again_when_nobody_has_it_and_not_before() {
    let answers = Answers::<u32>::default();
    let first = answers.take();
    let at = Arc::as_ptr(&first);
    first.give(1);
    let second = answers.take();
    assert_ne!(Arc::as_ptr(&second), at, "somebody waits for the first still");
    assert!(!second.is_given());
    drop(first);
    let third = answers.take();
    assert_eq!(Arc::as_ptr(&third), at);
    assert!(!third.is_given(), "it was renewed");
}

#[test]
fn boxes_serve_again_and_hold_nothing_meanwhile() {
    let (boxes, held) = (Boxes::default(), Arc::new(()));
    let mut first = boxes.put(Arc::clone(&held));
    let at = std::ptr::from_ref(&*first);
    drop(first.take());
    boxes.keep(first);
    assert_eq!(Arc::strong_count(&held), 1);
    let second = boxes.put(Arc::clone(&held));
    assert_eq!(std::ptr::from_ref(&*second), at);
    assert!(Arc::ptr_eq(second.get(), &held));
}

#[test]
fn what_is_kept_is_bounded() {
    let (boxes, answers) = (Boxes::default(), Answers::<()>::default());
    let (full, taken): (Vec<_>, Vec<_>) = (0..KEPT + 8).map(|_| (boxes.put(()), answers.take())).unzip();
    for mut boxed in full {
        boxed.take();
        boxes.keep(boxed);
    }
    drop(taken);
    assert_eq!(lock(&boxes.0).len(), KEPT);
    assert_eq!(lock(&answers.0).len(), KEPT);
}
