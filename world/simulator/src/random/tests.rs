use super::*;

#[test]
fn equal_seeds_give_equal_sequences_and_others_differ() {
    let draw = |seed| {
        let mut random = Random::new(seed);
        (0..8).map(|_| random.bits()).collect::<Vec<_>>()
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    assert_ne!(draw(0)[0], 0);
}

#[test]
fn draws_stay_in_their_range_and_reach_its_ends() {
    let mut random = Random::new(7);
    let mut seen = [0_u32; 5];
    for _ in 0..500 {
        seen[random.below(5) as usize] += 1;
        assert!((10..=12).contains(&random.between(10, 12)));
    }
    assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
    assert_eq!(random.between(3, 3), 3);
    assert!(!random.chance(0));
    assert!(random.chance(1000));
}

#[test]
fn a_fork_leaves_its_parent_alone_and_differs_by_part() {
    let parent = Random::new(3);
    let mut first = parent.fork(1);
    let mut second = parent.fork(2);
    assert_ne!(first.bits(), second.bits());
    assert_eq!(parent.clone().bits(), Random::new(3).bits());
}

#[test]
fn a_shuffle_keeps_all_items() {
    let mut items: Vec<u32> = (0..20).collect();
    Random::new(9).shuffle(&mut items);
    assert_ne!(items, (0..20).collect::<Vec<_>>());
    items.sort_unstable();
    assert_eq!(items, (0..20).collect::<Vec<_>>());
}

#[test]
fn exponential_draws_are_exponential() {
    let mut random = Random::new(11);
    let draws: Vec<u64> = (0..200_000).map(|_| random.exponential(1_000_000)).collect();
    let mean = draws.iter().sum::<u64>() / draws.len() as u64;
    assert!((990_000..1_010_000).contains(&mean), "{mean}");
    // One number in e, e^2 and e^3 is longer than one, two and three means.
    for (means, per_mille) in [(1, 368), (2, 135), (3, 50)] {
        let longer = draws.iter().filter(|draw| **draw > means * 1_000_000).count() as u64 * 1000 / draws.len() as u64;
        assert!(longer.abs_diff(per_mille) <= 4, "{longer} of 1,000 are longer than {means} means");
    }
}
