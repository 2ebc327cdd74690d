mod shown;

use super::*;

fn values(which: Bitmap, bytes: &[u8]) -> (Fattr, Vec<u8>) {
    (Fattr { which, values: (0..bytes.len()).into() }, bytes.to_vec())
}

#[test]
fn a_change_takes_what_may_be_set_and_refuses_the_rest() {
    let bytes = [&4096_u64.to_be_bytes()[..], &0o600_u32.to_be_bytes(), &[0, 0, 0, 2], b"12\0\0"].concat();
    let (known, record) = values(Bitmap::of(&[n::SIZE, n::MODE, n::OWNER]), &bytes);
    let all = super::known(2, true);
    let change_of = |known: &Fattr, record: &[u8]| change(known, record, &all, SETTABLE);
    let wanted = AttributeChange { size: Some(4096), mode: Some(0o600), uid: Some(12), ..AttributeChange::default() };
    assert_eq!(change_of(&known, &record), Ok(wanted));
    let refused: [(&[u32], &[u8], NfsStatus); 7] = [
        (&[n::FILEID], &[0; 8], NfsStatus::Inval),
        (&[12], &[0; 4], NfsStatus::Attrnotsupp),
        (&[n::SIZE], &[0; 4], NfsStatus::Badxdr),
        (&[n::SIZE], &[0; 12], NfsStatus::Badxdr),
        (&[n::SIZE], &[0xff; 8], NfsStatus::Fbig),
        (&[n::OWNER], b"\0\0\0\x04anna", NfsStatus::Badowner),
        (&[n::TIME_MODIFY_SET], &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff], NfsStatus::Inval),
    ];
    for (numbers, bytes, status) in refused {
        let (known, record) = values(Bitmap::of(numbers), bytes);
        assert_eq!(change_of(&known, &record), Err(status), "{numbers:?}");
    }
    let (known, record) = values(Bitmap { has_more: true, ..Bitmap::default() }, &[]);
    assert_eq!(change_of(&known, &record), Err(NfsStatus::Attrnotsupp));
}
