use super::*;

/// By hand: a header has 6 + 13 × 8 = 110 bytes, so with the name `a` and its end a file begins at 112.
#[test]
fn a_file_has_its_mode_its_size_and_its_place() {
    let mut initrd = vec![7; 5];
    append(&mut initrd, &[("a", b"hello".to_vec())]);
    let archive = &initrd[8..];
    assert_eq!(&archive[..6], b"070701");
    assert_eq!(
        (&archive[14..22], &archive[54..62], &archive[94..102]),
        (&b"000081ED"[..], &b"00000005"[..], &b"00000002"[..])
    );
    assert_eq!((&archive[110..112], &archive[112..117]), (&b"a\0"[..], &b"hello"[..]));
    assert_eq!(&archive[120 + 110..120 + 121], b"TRAILER!!!\0");
    assert_eq!(initrd.len() % 4, 0);
}
