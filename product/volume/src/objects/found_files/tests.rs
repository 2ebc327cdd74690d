//! Keys of files over processes.

use super::*;

#[test]
fn a_key_gives_the_identity_and_the_export_back() {
    for len in [0, 1, IDENTITY_BYTES_MAX] {
        let identity = Identity::new(u64::MAX - 5, 1, 0x81, &[7; IDENTITY_BYTES_MAX][..len]);
        let key = key_of(&identity, 0xabcd).unwrap();
        assert_eq!(parse(&key), Some((identity, 0xabcd)), "{len} bytes");
    }
}

#[test]
fn keys_of_others_are_counted_and_not_read() {
    let identity = Identity::new(3, 1, 2, b"host");
    let keys = vec![key_of(&identity, 9).unwrap(), FileKey::new(b"short").unwrap(), FileKey::new(&[1; 64]).unwrap()];
    let found = FoundFiles::new(keys);
    assert_eq!((found.all().len(), found.outside(&[9]), found.outside(&[8])), (1, 2, 3));
    found.remove(&identity);
    found.remove(&identity);
    assert!(found.get(&identity).is_none() && found.remaining.load(Ordering::Relaxed) == 0);
}
