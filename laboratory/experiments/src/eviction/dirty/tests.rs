use super::*;

#[test]
fn written_pages_stay_until_they_are_clean_and_then_go() {
    for kind in ENGINES {
        let mut cache = WithDirty::new(Ours::new(kind, 100, 10_000), 100, 10_000);
        let write = |page| Touch { page, write: true, ahead: 0 };
        cache.misses(&[write(0), write(1), write(1)], 0);
        assert_eq!(cache.dirty, [(DIRTY_MS, 0), (DIRTY_MS + 1, 1)], "{}: written twice, and dirty once", kind.name);
        let read = |pages: std::ops::Range<u32>| pages.map(|page| Touch { page, write: false, ahead: 0 });
        cache.misses(&read(2..5000).collect::<Vec<_>>(), 0);
        assert!(cache.cache.holds(0) && cache.cache.holds(1), "{}", kind.name);
        cache.clean(DIRTY_MS);
        cache.misses(&read(5000..9000).collect::<Vec<_>>(), 0);
        assert!(!cache.cache.holds(0) && cache.cache.holds(1), "{}", kind.name);
    }
    let mut cache = WithDirty::new(Ours::new(ENGINES[0], 100, 10_000), 100, 10_000);
    cache.misses(&(0..1000).map(|page| Touch { page, write: true, ahead: 0 }).collect::<Vec<_>>(), 0);
    assert_eq!(cache.dirty.len(), 100 / DIRTY_PART + 1, "the last write comes before the next cleaning");
}
