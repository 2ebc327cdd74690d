use std::collections::BTreeSet;

use super::*;

#[test]
fn a_set_of_ranges_is_a_set_of_pages() {
    let (mut ranges, mut pages) = (Ranges::default(), BTreeSet::new());
    let mut seed = 7_u64;
    let mut below = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    for _ in 0..5000 {
        let start = below(60);
        let piece = start..start + below(12);
        let before = pages.len();
        if below(2) == 0 {
            let added = ranges.insert(piece.clone());
            pages.extend(piece);
            assert_eq!(added as usize, pages.len() - before);
        } else {
            let removed = ranges.remove(piece.clone());
            pages.retain(|page| !piece.contains(page));
            assert_eq!(removed as usize, before - pages.len());
        }
        let from = below(65);
        let first = pages.range(from..65).next();
        assert_eq!(ranges.first_in(from..65).map(|piece| piece.start), first.copied());
        assert_eq!(ranges.is_empty(), pages.is_empty());
    }
    assert_eq!(ranges.clear() as usize, pages.len());
}
