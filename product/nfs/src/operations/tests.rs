use super::*;

#[test]
fn maps_permissions_to_what_nfs_asks_for() {
    let table = [
        (Kind::Regular, 0, 0),
        (Kind::Regular, 1, bits::READ),
        (Kind::Regular, 2, bits::MODIFY | bits::EXTEND),
        (Kind::Regular, 4, bits::EXECUTE),
        (Kind::Regular, 7, bits::READ | bits::MODIFY | bits::EXTEND | bits::EXECUTE),
        (Kind::Directory, 0, 0),
        (Kind::Directory, 1, bits::READ),
        (Kind::Directory, 2, 0),
        (Kind::Directory, 4, bits::LOOKUP),
        (Kind::Directory, 6, bits::LOOKUP | bits::MODIFY | bits::EXTEND | bits::DELETE),
        (Kind::Directory, 7, 0x1f),
        (Kind::Fifo, 3, bits::READ | bits::MODIFY | bits::EXTEND),
    ];
    for (kind, granted, expected) in table {
        assert_eq!(allowed(kind, granted), expected, "{kind:?} {granted}");
    }
}
