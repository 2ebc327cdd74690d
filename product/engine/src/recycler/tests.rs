use super::*;

#[test]
fn a_shared_value_serves_again_when_nobody_has_it_and_not_before() {
    let values = SharedRecycler::new(8);
    let take = |contents: u32| values.take(contents, |value, contents| *value = contents, Arc::new);
    let first = take(1);
    let at = Arc::as_ptr(&first);
    let second = take(2);
    assert_ne!(Arc::as_ptr(&second), at, "the first is in use");
    drop(first);
    let third = take(3);
    assert_eq!((Arc::as_ptr(&third), *third), (at, 3), "it was filled anew");
    assert_eq!(*second, 2);
}

#[test]
fn an_idle_value_serves_again() {
    let values = Recycler::new(8);
    let first = Box::new(1);
    let at = std::ptr::from_ref(&*first);
    assert!(values.try_keep(first));
    assert_eq!(values.take().map(|value| std::ptr::from_ref(&*value)), Some(at));
    assert_eq!(values.take(), None);
}

#[test]
fn the_number_of_kept_values_is_bounded() {
    let (values, shared) = (Recycler::new(8), SharedRecycler::new(8));
    let taken: Vec<_> = (0..16).map(|_| shared.take((), |_, ()| (), Arc::new)).collect();
    let kept = (0..16).filter(|at| values.try_keep(*at)).count();
    assert_eq!((kept, values.count(), shared.count()), (8, 8, 8));
    drop(taken);
    values.end();
    assert!(!values.try_keep(0) && values.count() == 0, "it keeps none after the end");
}
