use super::*;

fn user(id: u32, rights: u8) -> NamedEntry {
    NamedEntry { is_group: false, id, rights }
}

fn group(id: u32, rights: u8) -> NamedEntry {
    NamedEntry { is_group: true, id, rights }
}

fn acls() -> Acls {
    let access = AccessAcl { group: 5, named: vec![user(7, 6), group(u32::MAX - 1, 0)] };
    let default = Acl { owner: 7, group: 0, mask: Some(3), others: 4, named: vec![user(0, 7); NAMED_MAX] };
    Acls { access: Some(Arc::new(access)), default: Some(Arc::new(default)) }
}

fn decode(value: &[u8], has_access: bool, has_default: bool) -> Result<(Acls, usize), FormatError> {
    let mut fields = FieldBytes(value);
    Acls::decode(&mut fields, has_access, has_default).map(|acls| (acls, fields.rest().len()))
}

#[test]
fn lists_are_read_as_written_and_no_shorter_ones() {
    let (both, minimal) = (acls(), Acl { owner: 1, group: 2, mask: None, others: 3, named: Vec::new() });
    let cases = [
        both.clone(),
        Acls { access: None, ..both.clone() },
        Acls { default: None, ..both },
        Acls { access: None, default: Some(Arc::new(minimal)) },
        Acls::default(),
    ];
    for acls in cases {
        let mut value = Vec::new();
        acls.encode(&mut value);
        assert!(value.len() <= Acls::BYTES_MAX);
        let (has_access, has_default) = (acls.access.is_some(), acls.default.is_some());
        assert_eq!(decode(&value, has_access, has_default), Ok((acls.clone(), 0)));
        for length in 0..value.len() {
            assert!(decode(&value[..length], has_access, has_default).is_err(), "{length} of {acls:?}");
        }
        value.extend_from_slice(b"target");
        assert_eq!(decode(&value, has_access, has_default), Ok((acls, 6)), "the content follows");
    }
}

#[test]
fn values_out_of_range_are_refused_with_the_reason() {
    let mut value = Vec::new();
    Acls { default: None, ..acls() }.encode(&mut value);
    let with = |at: usize, byte: u8| {
        let mut value = value.clone();
        value[at] = byte;
        decode(&value, true, false).unwrap_err().to_string()
    };
    assert_eq!(with(0, 8), "the rights of an entry is 8 instead of 0 to 7");
    assert_eq!(with(2, NAMED_MAX as u8 + 1), "the number of a list's entries is 129 instead of 0 to 128");
    assert_eq!(with(3, 0x17), "the rights of an entry is 23 instead of 0 to 7");
    assert_eq!(with(2, 3), "the entries of a list has 10 bytes instead of 15 to 18446744073709551615");
}
