use super::*;

#[test]
fn ranges_of_bytes_become_sectors() {
    // (range, touched, covered)
    let table = [
        (0..4096, 0xff, 0xff),
        (0..512, 0b1, 0b1),
        (0..513, 0b11, 0b1),
        (1..512, 0b1, 0),
        (511..513, 0b11, 0),
        (512..1536, 0b110, 0b110),
        (100..100, 0, 0),
        (4095..4096, 0x80, 0),
        (3000..4096, 0b1110_0000, 0b1100_0000),
    ];
    for (range, touched, covered) in table {
        assert_eq!(Sectors::touched(range.clone()), Sectors(touched), "{range:?}");
        assert_eq!(Sectors::covered(range.clone()), Sectors(covered), "{range:?}");
    }
}

#[test]
fn sets_know_their_ends() {
    assert_eq!((Sectors(0b0110_0100).first(), Sectors(0b0110_0100).end()), (2, 7));
    assert_eq!((Sectors::NONE.first(), Sectors::NONE.end()), (8, 0));
    assert!(Sectors(0b111).has_span(0, 3) && !Sectors(0b101).has_span(0, 3));
    assert!(Sectors::NONE.has_span(4, 4));
}
