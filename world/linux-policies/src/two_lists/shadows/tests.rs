use super::*;

fn key(page: u64) -> PageKey {
    PageKey { file: 0, page }
}

#[test]
fn a_shadow_tells_how_many_pages_went_or_were_activated_since() {
    let mut shadows = Shadows::new(8);
    (0..3).for_each(|page| shadows.note(key(page)));
    shadows.age(4);
    assert_eq!((shadows.take(key(1)), shadows.take(key(1)), shadows.take(key(9))), (Some(6), None, None));
    shadows.note(key(1));
    assert_eq!(shadows.take(key(1)), Some(1), "it went once more");
}

#[test]
fn no_more_shadows_are_kept_than_there_are_frames() {
    let mut shadows = Shadows::new(100);
    for page in 0..10_000 {
        shadows.note(key(page));
        // Every other one comes back, so that the order has pages without a shadow.
        if page % 2 == 0 {
            shadows.take(key(page));
        }
        shadows.note(key(page / 2));
    }
    assert!(shadows.ages.len() <= 100 && shadows.order.len() <= 100);
    assert_eq!((shadows.take(key(0)), shadows.take(key(9999)).is_some()), (None, true));
}
