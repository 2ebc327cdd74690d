use super::super::*;

/// A round that ends lets go by number of what waited when it took the number.
#[test]
fn a_range_that_waits_for_more_has_another_number() {
    let (file, first) = (Arc::new(()), Arc::new(()));
    let (mut withheld, mut firsts) = (WithheldRanges::<()>::default(), WithheldRanges::<()>::default());
    let after = |range| Earlier { file: Arc::downgrade(&first), range };
    let one = withheld.order(&(3..5), after(0..100));
    firsts.later().add(&file, &one);
    let freed = firsts.later().take(u64::MAX, &(0..100), |_| false);
    let more = withheld.order(&(3..5), after(200..300));
    firsts.later().add(&file, &more);
    assert_eq!((more.replaced, more.range.clone(), withheld.ranges()), (Some(one.number), 0..300, 1));
    assert_eq!(freed.iter().map(|(_, number)| withheld.remove(*number)).collect::<Vec<_>>(), [None]);
    assert!(withheld.has_page(4), "it waits for the other bytes");
    let freed = firsts.later().take(u64::MAX, &(0..300), |_| false);
    assert_eq!(freed.iter().map(|(_, number)| withheld.remove(*number)).collect::<Vec<_>>(), [Some(3..5)]);
    assert!(withheld.is_empty() && firsts.later().last_position().is_none() && firsts.later().by_id.is_empty());
}

#[test]
fn the_first_obstacle_is_found_among_pages_that_are_kept() {
    let first = Arc::new(());
    let mut withheld = WithheldRanges::<()>::default();
    let number = withheld.order(&(10..20), Earlier { file: Arc::downgrade(&first), range: 7..8 }).number;
    let held = withheld.hold(&(30..40));
    let kept = [5, 12, 35];
    let next_kept = |page| kept.into_iter().find(|kept| *kept >= page);
    let found = |withheld: &WithheldRanges<()>, pages| {
        let Obstacles { holder, earlier } = withheld.obstacles(&pages, next_kept);
        (holder, earlier.map(|(number, _)| number))
    };
    assert_eq!(found(&withheld, 0..12), (false, None));
    assert_eq!(found(&withheld, 0..13), (false, Some(number)));
    assert_eq!(found(&withheld, 13..35), (false, None));
    assert_eq!(found(&withheld, 12..100), (true, Some(number)));
    assert_eq!(withheld.remove(held), Some(30..40));
    assert_eq!(found(&withheld, 12..100), (false, Some(number)));
}
