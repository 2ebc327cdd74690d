use super::*;

#[test]
fn sizes_are_for_regular_files_within_the_range() {
    assert_eq!(check_size(None, Kind::Directory), Ok(()));
    assert_eq!(check_size(Some(FILE_BYTES_MAX), Kind::Regular), Ok(()));
    assert_eq!(check_size(Some(FILE_BYTES_MAX + 1), Kind::Regular), Err(NfsStatus::Fbig));
    assert_eq!(check_size(Some(0), Kind::Directory), Err(NfsStatus::Isdir));
    assert_eq!(check_size(Some(0), Kind::Symlink), Err(NfsStatus::Inval));
}
