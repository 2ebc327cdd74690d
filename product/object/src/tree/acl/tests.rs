use super::*;

fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut value = VERSION.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        value.extend_from_slice(&tag.to_le_bytes());
        value.extend_from_slice(&rights.to_le_bytes());
        value.extend_from_slice(&id.to_le_bytes());
    }
    value
}

const OWNER: (u16, u16, u32) = (tag::USER_OBJ, 6, NO_ID);
const GROUP: (u16, u16, u32) = (tag::GROUP_OBJ, 5, NO_ID);
const MASK: (u16, u16, u32) = (tag::MASK, 4, NO_ID);
const OTHER: (u16, u16, u32) = (tag::OTHER, 1, NO_ID);

#[test]
fn a_list_comes_back_as_it_was_set_and_its_mask_is_the_modes_group() {
    let named = [OWNER, (tag::USER, 7, 9), (tag::USER, 0, 3), GROUP, (tag::GROUP, 2, 8), MASK, OTHER];
    for (entries, mode) in [(&named[..], 0o641), (&[OWNER, GROUP, MASK, OTHER], 0o641), (&[OWNER, GROUP, OTHER], 0o651)]
    {
        let value = list(entries);
        let acl = read(&value).unwrap().unwrap();
        assert_eq!(write(&acl), value);
        assert_eq!(acl.mode(), mode);
        let access = acl.access();
        assert_eq!(access.is_some(), entries.len() > 3);
        access.iter().for_each(|access| assert_eq!(Acl::of_access(access, mode), acl));
    }
    assert_eq!((read(b""), read(&list(&[]))), (Ok(None), Ok(None)));
}

#[test]
fn lists_that_linux_refuses_are_refused() {
    let (user, group) = ((tag::USER, 7, 9), (tag::GROUP, 7, 9));
    let refused: [&[_]; 11] = [
        &[OWNER],
        &[OWNER, GROUP],
        &[GROUP, OTHER],
        &[OWNER, OTHER, GROUP],
        &[OWNER, user, GROUP, OTHER],
        &[OWNER, GROUP, user, MASK, OTHER],
        &[OWNER, group, GROUP, MASK, OTHER],
        &[OWNER, OWNER, GROUP, OTHER],
        &[OWNER, GROUP, OTHER, OTHER],
        &[OWNER, (tag::USER, 7, NO_ID), GROUP, MASK, OTHER],
        &[OWNER, (tag::GROUP_OBJ, 8, NO_ID), OTHER],
    ];
    for entries in refused {
        assert_eq!(read(&list(entries)), Err(NO_LIST), "{entries:?}");
    }
    assert_eq!(read(&list(&[OWNER, GROUP, OTHER])[..27]), Err(NO_LIST));
    assert_eq!(read(b"no"), Err(NO_LIST));
    assert_eq!(read(&[1; 4]), Err(VolumeError::NotSupported), "another version");
    let with = |users: usize| {
        let users = (0..users).map(|at| (tag::USER, 7, at as u32));
        read(&list(&[OWNER].into_iter().chain(users).chain([GROUP, MASK, OTHER]).collect::<Vec<_>>()))
    };
    assert_eq!(with(NAMED_MAX).unwrap().unwrap().named.len(), NAMED_MAX);
    assert_eq!(with(NAMED_MAX + 1), Err(VolumeError::NoSpace));
}
