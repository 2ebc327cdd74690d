use super::*;

/// Traced in 6.1.176: a slice of 6,144 pages to page 60,416 of a file, and one of 5,120 to page 65,536. Their extents
/// ended at the pages 59,392, 60,416, 61,440, 63,488 and 65,536.
#[test]
fn an_extent_ends_at_its_longest_length_and_with_its_slice() {
    let mut extents = Extents::default();
    extents.slice_begins(54_272);
    extents.slice_begins(60_416);
    let table = [(59_391, 2047), (59_392, 0), (60_415, 1023), (60_416, 0), (60_916, 500), (61_440, 0), (63_487, 2047)];
    for (written, unended) in table {
        assert_eq!(extents.unended(written, 2048), unended, "{written}");
        assert_eq!(extents.unended(written, 1), 0, "each request ends by itself");
    }
    // A look for a slice that submits nothing begins none.
    extents.slice_begins(60_416);
    assert_eq!(extents.unended(60_415, 2048), 1023);
    extents.slice_begins(65_536);
    assert_eq!(extents.unended(60_415, 2048), 0, "of three slices the first counts as ended");
}
