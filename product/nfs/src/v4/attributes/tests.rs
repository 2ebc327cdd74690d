mod shown;

use super::*;

fn values(which: Bitmap, bytes: &[u8]) -> (Fattr, Vec<u8>) {
    (Fattr { which, values: (0..bytes.len()).into() }, bytes.to_vec())
}

#[test]
fn a_change_takes_what_may_be_set_and_refuses_the_rest() {
    let bytes = [&4096_u64.to_be_bytes()[..], &0o600_u32.to_be_bytes(), &[0, 0, 0, 2], b"12\0\0"].concat();
    let (known, record) = values(Bitmap::of(&[n::SIZE, n::MODE, n::OWNER]), &bytes);
    let all = super::known(2, true, true);
    let change_of = |known: &Fattr, record: &[u8]| change(known, record, &all, SETTABLE).map(|asked| asked.change);
    let wanted = AttributeChange { size: Some(4096), mode: Some(0o600), uid: Some(12), ..AttributeChange::default() };
    assert_eq!(change_of(&known, &record), Ok(wanted));
    let refused: [(&[u32], &[u8], NfsStatus); 8] = [
        (&[n::FILEID], &[0; 8], NfsStatus::Inval),
        (&[12], &[0; 4], NfsStatus::Attrnotsupp),
        (&[n::SIZE], &[0; 4], NfsStatus::Badxdr),
        (&[n::SIZE], &[0; 12], NfsStatus::Badxdr),
        (&[n::SIZE], &[0xff; 8], NfsStatus::Fbig),
        (&[n::OWNER], b"\0\0\0\x04@abc", NfsStatus::Badowner),
        (&[n::OWNER], b"\0\0\0\x0a4294967295\0\0", NfsStatus::Badowner),
        (&[n::TIME_MODIFY_SET], &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff], NfsStatus::Inval),
    ];
    for (numbers, bytes, status) in refused {
        let (known, record) = values(Bitmap::of(numbers), bytes);
        assert_eq!(change_of(&known, &record), Err(status), "{numbers:?}");
    }
    let (known, record) = values(Bitmap { has_more: true, ..Bitmap::default() }, &[]);
    assert_eq!(change_of(&known, &record), Err(NfsStatus::Attrnotsupp));
}

#[test]
fn an_owner_is_a_number_or_a_name_at_any_domain() {
    let asked = |owner: &[u8], group: &[u8]| {
        let value = |name: &[u8]| {
            let mut writer = Writer::default();
            writer.opaque(name);
            writer.into_bytes()
        };
        let (known, record) = values(Bitmap::of(&[n::OWNER, n::OWNER_GROUP]), &[value(owner), value(group)].concat());
        let read = change(&known, &record, &super::known(2, true, true), SETTABLE)?;
        Ok((read.change.uid, read.change.gid, read.owner.map(str::to_owned), read.owner_group.map(str::to_owned)))
    };
    let name = |name: &str| Some(name.to_owned());
    assert_eq!(asked(b"12", b"13@example.org"), Ok((Some(12), Some(13), None, None)));
    assert_eq!(asked(b"anna", b"staff@example.org"), Ok((None, None, name("anna"), name("staff"))));
    assert_eq!(asked(b"12a", b"-1"), Ok((None, None, name("12a"), name("-1"))));
    assert_eq!(asked(&[b'a'; 256], b"1"), Ok((None, Some(1), name(&"a".repeat(256)), None)));
    for bad in [&[b'a'; 257][..], b"", b"@example.org", b"\xff"] {
        assert_eq!(asked(bad, b"1"), Err(NfsStatus::Badowner), "{bad:?}");
    }
}
