use super::*;

#[test]
fn nobody_counts_as_one() {
    let waiting = Waiting::default();
    assert_eq!((waiting.sharing(), waiting.on_average()), (1, 1));
}

#[test]
fn a_share_follows_at_once_upwards_and_in_a_tenth_of_a_second_downwards() {
    let mut waiting = Waiting::default();
    waiting.note(0, 40);
    assert_eq!((waiting.sharing(), waiting.on_average()), (40, 1));
    waiting.note(100 * MILLISECOND, 0);
    assert_eq!((waiting.sharing(), waiting.on_average()), (40, 4));
    waiting.note(150 * MILLISECOND, 0);
    assert_eq!(waiting.sharing(), 20);
    waiting.note(250 * MILLISECOND, 0);
    assert_eq!(waiting.sharing(), 1);
}

#[test]
fn the_long_average_takes_a_second() {
    let mut waiting = Waiting::default();
    for at in 0..=100 {
        waiting.note(at * 10 * MILLISECOND, 10);
    }
    assert!((6..=10).contains(&waiting.on_average()), "{}", waiting.on_average());
    waiting.note(3000 * MILLISECOND, 10);
    assert_eq!(waiting.on_average(), 10);
}
