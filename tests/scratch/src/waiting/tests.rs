use super::*;

#[test]
fn the_wait_ends_with_the_condition_or_the_limit() {
    let mut looks = 0;
    eventually("the third look", || {
        looks += 1;
        looks == 3
    });
    assert_eq!(looks, 3);
    let began = Instant::now();
    assert!(!within(Duration::from_millis(20), || false));
    assert!(began.elapsed() >= Duration::from_millis(20));
    assert!(within(Duration::ZERO, || true), "it looks at least once");
}
