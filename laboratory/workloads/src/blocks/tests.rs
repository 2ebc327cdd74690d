use super::*;

#[test]
fn each_is_found_once_from_wherever() {
    for count in [1, 63, 64, 65, 200] {
        let mut blocks = Blocks::new(count);
        for turn in 0..2 {
            let mut seen = vec![false; count as usize];
            for step in 0..count {
                let free = blocks.next_free((step * 37 + turn) % count).expect("one is free");
                assert!(!std::mem::replace(&mut seen[free as usize], true), "{free} of {count} twice");
                assert_eq!(blocks.take(free, 1), 1);
            }
            assert!(blocks.is_full() && blocks.next_free(0).is_none());
            blocks.clear();
        }
    }
}

#[test]
fn a_run_ends_at_one_taken_and_at_the_end() {
    let mut blocks = Blocks::new(100);
    assert_eq!(blocks.take(70, 5), 5);
    assert_eq!(blocks.take(60, 50), 10);
    assert_eq!(blocks.take(75, 50), 25);
    assert_eq!(blocks.next_free(80), Some(0));
    assert_eq!(blocks.next_free(59), Some(59));
}
