use super::*;
use crate::zone::form::*;

fn text(order: &[Mobility]) -> String {
    order.iter().map(|class| ["U", "R", "M"][class.index()]).collect()
}

fn check<F: Form>(contents: [u32; 3], count: u32, examined: u64, inner: Option<u64>, order: &str) {
    let (counters, drained) = drained::<F>(contents, count, Mobility::Movable);
    assert_eq!(counters.lists_examined, examined, "{} {contents:?}", F::NAME);
    if let Some(inner) = inner {
        assert_eq!(counters.inner_checks, inner, "{} {contents:?}", F::NAME);
    }
    if !order.is_empty() {
        assert_eq!(text(&drained), order, "{} {contents:?}", F::NAME);
    }
    assert_eq!(drained.len() as u32, count.min(contents.iter().sum()));
}

#[test]
fn the_drains_of_31_frames_are_those_of_the_kernels() {
    let (u, r, m) = ("U".repeat(31), "R".repeat(31), "M".repeat(31));
    let mmu = "MMU".repeat(10) + "M";
    let rmu = "RMU".repeat(10) + "M";
    let rmr = "RMR".repeat(7) + "RM";
    // Contents U/R/M; patch 1; patch 2 and its inner checks; the same with the shortcut; patch 2's order.
    let rows = [
        ([0, 0, 31], 92, (32, 20), (5, 29), &m[..]),
        ([31, 0, 0], 93, (33, 20), (3, 30), &u),
        ([0, 31, 0], 91, (31, 20), (4, 29), &r),
        ([10, 0, 21], 62, (32, 10), (32, 10), &mmu),
        ([10, 10, 11], 32, (32, 0), (32, 0), &rmu),
        ([1, 0, 30], 89, (32, 19), (8, 27), ""),
        ([0, 15, 16], 47, (32, 12), (26, 14), ""),
    ];
    for (contents, patch_1, patch_2, shortcut, order) in rows {
        check::<ListPerClass>(contents, 31, patch_1, Some(0), "");
        check::<BatchedDrain>(contents, 31, patch_2.0, Some(patch_2.1), order);
        check::<ZoneTunables>(contents, 31, patch_2.0, Some(patch_2.1), order);
        check::<ShortcutDrain>(contents, 31, shortcut.0, Some(shortcut.1), "");
        check::<SingleList>(contents, 31, 31, Some(0), "");
    }
    check::<ListPerClass>([0, 0, 186], 31, 92, None, &m);
    check::<BatchedDrain>([0, 0, 186], 31, 32, None, &m);
    check::<BatchedDrain>([1, 0, 30], 31, 32, None, &format!("MMU{}", "M".repeat(28)));
    assert!(text(&drained::<BatchedDrain>([0, 15, 16], 31, Mobility::Movable).1).starts_with(&rmr[..21]));
}

#[test]
fn patch_1_alternates() {
    check::<ListPerClass>([10, 0, 21], 31, 62, None, &("MU".repeat(10) + &"M".repeat(11)));
}

#[test]
fn linux_6_1_empties_the_list_freed_to_last() {
    check::<EmptyFirstDrain>([0, 0, 31], 31, 1, Some(0), &"M".repeat(31));
    let (counters, drained) = drained::<EmptyFirstDrain>([10, 0, 21], 31, Mobility::Unmovable);
    assert_eq!(counters.lists_examined, 2);
    assert_eq!(text(&drained), "U".repeat(10) + &"M".repeat(21));
}

#[test]
fn a_drain_of_more_than_there_is_ends() {
    for count in [5, u32::MAX] {
        assert_eq!(drained::<ListPerClass>([1, 2, 1], count, Mobility::Movable).1.len(), 4);
        assert_eq!(drained::<BatchedDrain>([1, 2, 1], count, Mobility::Movable).1.len(), 4);
        assert_eq!(drained::<EmptyFirstDrain>([1, 2, 1], count, Mobility::Movable).1.len(), 4);
        assert_eq!(drained::<SingleList>([1, 2, 1], count, Mobility::Movable).1.len(), 4);
    }
    assert_eq!(drained::<EmptyFirstDrain>([0; 3], 31, Mobility::Movable).1.len(), 0);
}

#[test]
fn only_the_single_list_is_searched() {
    fn searched<F: Form>(end: Temperature) -> u64 {
        let map = MemMap::new(16);
        let mut lists = PerCpuPages::<F>::new(Tunables { high: 100, batch: 1 });
        for frame in 0..8 {
            let class = if frame == 2 { Mobility::Unmovable } else { Mobility::Movable };
            lists.put(&map, frame, class, Temperature::Hot);
        }
        assert_eq!(lists.take(&map, Mobility::Unmovable, end), Some(2));
        assert_eq!(lists.count, 7);
        lists.counters.elements_searched
    }
    assert_eq!(searched::<SingleList>(Temperature::Hot), 6);
    assert_eq!(searched::<SingleList>(Temperature::Cold), 3);
    assert_eq!(searched::<ListPerClass>(Temperature::Hot), 0);
}

/// By hand, for contents that no document has. A walk begins at the second list, and ends with the first.
#[test]
fn drains_of_few_frames_are_as_by_hand() {
    // Two heads to a movable frame and one to the next unmovable, three times; then three heads a frame.
    check::<ListPerClass>([5, 0, 3], 8, 3 * 3 + 2 * 3, Some(0), "MUMUMUUU");
    // One head to a reclaimable frame and two to an unmovable, three times; then three heads.
    check::<ListPerClass>([4, 3, 0], 7, 3 * 3 + 3, Some(0), "RURURUU");
    // Two heads give two frames; the rest of a batch goes on from list to list.
    check::<BatchedDrain>([5, 0, 3], 8, 9, None, "MMUMUUUU");
}
