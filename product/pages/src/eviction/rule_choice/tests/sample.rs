use super::super::*;
use crate::page::{PRESENT, UPTODATE};

#[test]
fn a_page_keeps_its_number_while_it_may_not_be_forgotten() {
    let mut sample = Sample::new(4);
    let first: Vec<_> = (1..=16).map(|hash| sample.number(hash << 20, |_| false)).collect();
    assert!(first.iter().all(Option::is_some), "there are 16 numbers");
    assert_eq!(sample.number(99 << 20, |_| false), None, "none is free");
    assert_eq!((1..=16).map(|hash| sample.number(hash << 20, |_| false)).collect::<Vec<_>>(), first);
    assert_eq!(sample.number(99 << 20, |page| page == 7), Some(7));
    assert_eq!(sample.number(99 << 20, |_| false), Some(7));
}

/// A sample of one page, which is in frame 1 and was used once.
fn of_one() -> (Sample, PageTable, u16) {
    let (mut sample, pages) = (Sample::new(1), PageTable::new(4));
    let frame = FrameId::new(1);
    pages.occupy(frame, PageIdentity { file: 3, index: 5 }, PRESENT | UPTODATE);
    let number = sample.number(77, |_| true).expect("it is empty");
    sample.put(number, frame, &pages, 1);
    pages.touch(frame);
    (sample, pages, number)
}

/// The pages that were used, by one check of each.
fn used(sample: &mut Sample, pages: &PageTable) -> Vec<u16> {
    let looks = (0..sample.pages() / WAYS).map(|_| sample.look(pages));
    looks.flat_map(|(first, used)| bits(used).map(move |way| first + way as u16)).collect()
}

#[test]
fn a_use_since_the_last_look_shows_however_often_the_page_is_used() {
    let (mut sample, pages, number) = of_one();
    assert_eq!(used(&mut sample, &pages), [], "the use it came for");
    for round in 0..10 {
        (0..=round).for_each(|_| pages.touch(FrameId::new(1)));
        assert_eq!(used(&mut sample, &pages), [number], "{round}");
        assert_eq!(used(&mut sample, &pages), [], "{round}: not used again");
    }
}

#[test]
fn a_frame_that_holds_another_page_tells_nothing() {
    let (mut sample, pages, _) = of_one();
    let frame = FrameId::new(1);
    pages.occupy(frame, PageIdentity { file: 3, index: 6 }, PRESENT | UPTODATE);
    (0..3).for_each(|_| pages.touch(frame));
    assert_eq!(used(&mut sample, &pages), []);
}
