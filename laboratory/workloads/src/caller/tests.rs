use super::Copies;
use afflux_simulator::CostTable;

const MIB: u64 = 1 << 20;

/// Mean cost of a page on the second pass over this many bytes.
fn mean_ns(bytes: u64, stride: u64, writes: bool) -> u64 {
    let mut copies = Copies::new(&CostTable::standard());
    let mut pass = || {
        let pages = bytes / 4096;
        let page = |at: u64| at * stride % pages;
        (0..pages).map(|at| copies.copied_ns(1, page(at) * 4096, 4096, writes)).sum::<u64>() / pages
    };
    pass();
    pass()
}

#[test]
fn pages_beyond_the_cpus_cache_cost_what_memory_does() {
    // 769 is odd, so the stride visits all pages, and none right after its neighbour.
    for (bytes, stride, writes, expected) in [
        (8 * MIB, 1, false, 0..3),
        (8 * MIB, 769, true, 0..3),
        (256 * MIB, 1, false, 48..53),
        (256 * MIB, 1, true, 150..155),
        (256 * MIB, 769, false, 340..350),
        (256 * MIB, 769, true, 340..350),
    ] {
        let ns = mean_ns(bytes, stride, writes);
        assert!(expected.contains(&ns), "{bytes} {stride} {writes}: {ns}");
    }
}

#[test]
fn a_page_in_pieces_is_copied_from_memory_once() {
    let mut copies = Copies::new(&CostTable::standard());
    let pieces: Vec<u64> = (0..8).map(|at| copies.copied_ns(1, at * 512, 512, false)).collect();
    assert_eq!((pieces[0], pieces[1..].iter().sum::<u64>()), (348, 0));
    let mut free = Copies::new(&CostTable::free());
    assert!(!free.cost_something() && free.copied_ns(1, 0, MIB, true) == 0);
}
