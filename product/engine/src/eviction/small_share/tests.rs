use super::*;

fn share_after(returns: &[(Left, u64)]) -> u64 {
    let share = SmallShare::new(12_800);
    returns.iter().for_each(|(left, age)| share.came_back(*left, *age));
    share.frames()
}

#[test]
fn each_return_moves_the_share_towards_the_part_that_was_too_small() {
    assert_eq!(share_after(&[]), 400);
    assert_eq!(share_after(&[(Left::Small, 1000), (Left::Small, 2000)]), 600);
    assert_eq!(share_after(&[(Left::Small, 1000), (Left::Main, 2000)]), 400);
}

#[test]
fn pages_that_come_back_in_order_count_once() {
    let in_order: Vec<_> = (0..1000).map(|number| (Left::Small, 3000 + number % 50)).collect();
    assert_eq!(share_after(&in_order), 500);
    let in_turns: Vec<_> = (0..40).map(|number| (Left::Small, 3000 + number % 2 * 51)).collect();
    assert_eq!(share_after(&in_turns), 400 + 40 * 100, "51 pages apart is no order");
    assert_eq!(share_after(&[(Left::Small, 3000), (Left::Main, 9), (Left::Small, 3000)]), 400, "each part by itself");
}

#[test]
fn the_share_stays_within_its_bounds() {
    let many = |left| (0..500).map(|number| (left, number % 2 * 1000)).collect::<Vec<_>>();
    assert_eq!(share_after(&many(Left::Small)), 6400);
    assert_eq!(share_after(&many(Left::Main)), 400);
}
