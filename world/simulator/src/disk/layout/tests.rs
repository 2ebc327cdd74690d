use super::*;

const CHUNK: u64 = 64 << 10;
const CAPACITY: u64 = 64 * CHUNK;

fn delayed() -> Layout {
    Layout::new(Allocation::Delayed { chunk_bytes: CHUNK }, CAPACITY)
}

fn find(layout: &Layout, file: u64, offset: u64, len: u64) -> Vec<(u64, u64)> {
    let mut spans = Vec::new();
    layout.find(file, offset, len, &mut spans);
    spans.iter().map(|span| (span.position, span.len)).collect()
}

/// Checks that no two files share a position and that no file has a free one.
fn check(layout: &Layout) {
    let mut ranges: Vec<(u64, u64)> = layout.free.iter().map(|(start, len)| (*start, *len)).collect();
    for map in layout.files.values() {
        ranges.extend(map.extents.values().map(|extent| (extent.position, extent.len)));
    }
    ranges.sort_unstable();
    let mut at = 0;
    for (start, len) in ranges {
        assert_eq!(start, at, "a place is lost or given out twice");
        at += len;
    }
    assert_eq!(at, layout.capacity);
}

#[test]
fn interleaved_writers_stay_in_chunks_or_fragment() {
    let (mut chunked, mut fragmented) = (delayed(), Layout::new(Allocation::AtSubmission, CAPACITY));
    for at in 0..32 {
        for file in 0..2 {
            chunked.allocate(file, at * 4096, 4096);
            fragmented.allocate(file, at * 4096, 4096);
        }
    }
    assert_eq!(find(&chunked, 0, 0, 32 * 4096), [(0, CHUNK), (2 * CHUNK, CHUNK)]);
    assert_eq!(find(&chunked, 1, 0, 32 * 4096), [(CHUNK, CHUNK), (3 * CHUNK, CHUNK)]);
    assert_eq!(find(&fragmented, 0, 0, 32 * 4096).len(), 32);
    check(&chunked);
    check(&fragmented);
}

#[test]
fn what_was_never_written_has_no_place_and_what_was_there_is_in_one_piece() {
    let mut layout = delayed();
    assert_eq!(find(&layout, 0, 0, 1 << 20), []);
    layout.lay_out(0, 0, 10 * CHUNK + 1);
    assert_eq!(find(&layout, 0, 4096, 10 * CHUNK), [(4096, 10 * CHUNK)]);
    layout.allocate(0, 3 * CHUNK, 4096);
    assert_eq!(find(&layout, 0, 10 * CHUNK, CHUNK), [(10 * CHUNK, 4096)]);
    check(&layout);
}

#[test]
fn a_given_place_is_kept_and_the_next_file_lies_behind_the_last_one() {
    let mut layout = delayed();
    layout.place(1, 0, 40 * CHUNK, CHUNK);
    layout.place(1, CHUNK, 0, CHUNK);
    layout.place(0, 0, 8 * CHUNK, 4096);
    check(&layout);
    layout.allocate(1, 0, 2 * CHUNK);
    assert_eq!(find(&layout, 1, 0, 2 * CHUNK), [(40 * CHUNK, CHUNK), (0, CHUNK)]);
    layout.allocate(2, 0, CHUNK);
    assert_eq!(find(&layout, 2, 0, CHUNK), [(8 * CHUNK + 4096, CHUNK)]);
    check(&layout);
}

#[test]
fn freed_space_is_used_again_and_a_full_medium_shares_places() {
    let mut layout = delayed();
    (0..4).for_each(|file| layout.lay_out(file, 0, 16 * CHUNK));
    assert!(layout.free.is_empty());
    layout.free(1, CHUNK + 1, u64::MAX - CHUNK - 1);
    assert_eq!(find(&layout, 1, 0, 16 * CHUNK), [(16 * CHUNK, CHUNK + 4096)]);
    layout.remove(2);
    check(&layout);
    layout.allocate(9, 0, 20 * CHUNK);
    assert_eq!(find(&layout, 9, 0, 20 * CHUNK), [(17 * CHUNK + 4096, 20 * CHUNK)]);
    check(&layout);
    layout.lay_out(9, 0, CAPACITY);
    assert!(layout.free.is_empty());
    assert_eq!(find(&layout, 9, 0, CAPACITY).iter().map(|span| span.1).sum::<u64>(), CAPACITY);
}

#[test]
fn random_writing_punching_and_truncating_loses_no_place() {
    let mut random = crate::Random::new(1);
    for allocation in [Allocation::AtSubmission, Allocation::Delayed { chunk_bytes: CHUNK }] {
        let mut layout = Layout::new(allocation, CAPACITY);
        for _ in 0..4000 {
            let (file, offset) = (random.below(4), random.below(12) * CHUNK + random.below(16) * 4096);
            let len = 1 + random.below(CHUNK);
            match random.below(8) {
                0 => layout.remove(file),
                1 => layout.free(file, offset, len),
                2 => layout.free(file, offset, u64::MAX - offset),
                _ => {
                    layout.allocate(file, offset, len);
                    let found: u64 = find(&layout, file, offset, len).iter().map(|span| span.1).sum();
                    assert_eq!(found, len);
                }
            }
            check(&layout);
        }
    }
}
