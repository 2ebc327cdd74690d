use super::*;

#[test]
fn a_page_is_there_until_its_frame_is_freed_or_its_reader_has_passed_it() {
    let mut lists = Lists::new(8, 2);
    let page = |page| Owner { file: 1, page };
    (0..3).for_each(|frame| lists.add(frame, page(frame)));
    assert!((0..3).all(|at| lists.has(page(at))) && !lists.has(page(3)) && !lists.has(Owner { file: 0, page: 0 }));
    let mut isolated = Vec::new();
    lists.isolate(List::Inactive, 2, &mut isolated);
    assert_eq!((isolated.as_slice(), lists.sizes()), (&[0, 1][..], Sizes { inactive: 1, active: 0, isolated: 2 }));
    lists.was_read(page(0));
    lists.freed(&isolated);
    assert_eq!(lists.sizes(), Sizes { inactive: 1, active: 0, isolated: 0 });
    assert_eq!([0, 1, 2].map(|at| lists.has(page(at))), [false, false, true], "1 went before it was read");
}

#[test]
fn a_page_that_goes_after_it_was_read_takes_no_later_one_with_it() {
    let mut lists = Lists::new(2, 1);
    let page = |page| Owner { file: 0, page };
    lists.add(0, page(0));
    lists.was_read(page(0));
    // A page 64 further on has the same bit.
    lists.add(1, page(AHEAD_PAGES));
    let mut isolated = Vec::new();
    lists.isolate(List::Inactive, 1, &mut isolated);
    lists.freed(&isolated);
    assert!(lists.has(page(AHEAD_PAGES)));
}
