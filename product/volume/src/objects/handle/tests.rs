mod file_ids;

use super::*;

fn key() -> HandleKey {
    HandleKey::new(*b"0123456789abcdef")
}

#[test]
fn a_handle_opens_to_what_was_sealed() {
    for len in [0, 1, 8, 12, IDENTITY_BYTES_MAX] {
        let identity = Identity::new(u64::MAX - 3, 2, 0x81, &vec![0xa5; len]);
        let handle = key().seal(&identity, 0x1234);
        assert!(handle.as_bytes().len() <= HANDLE_BYTES_MAX);
        assert_eq!(key().open(handle.as_bytes()), Ok((identity, 0x1234)));
    }
}

#[test]
fn every_changed_bit_and_every_other_length_is_refused() {
    let handle = key().seal(&Identity::new(7, 1, 1, &[1, 2, 3, 4, 5, 6, 7, 8]), 9);
    let bytes = handle.as_bytes().to_vec();
    for bit in 0..bytes.len() * 8 {
        let mut forged = bytes.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(key().open(&forged), Err(VolumeError::BadHandle), "bit {bit}");
    }
    for len in 0..bytes.len() {
        assert_eq!(key().open(&bytes[..len]), Err(VolumeError::BadHandle), "{len} bytes");
    }
    for more in 1..80 {
        let mut longer = bytes.clone();
        longer.resize(bytes.len() + more, 0);
        assert_eq!(key().open(&longer), Err(VolumeError::BadHandle));
    }
    assert_eq!(HandleKey::new([0; 16]).open(&bytes), Err(VolumeError::BadHandle));
}

#[test]
fn the_hash_is_siphash_2_4() {
    // The vector of the SipHash paper, appendix A: key 00..0f, message 00..0e.
    let key = HandleKey::new(std::array::from_fn(|at| at as u8));
    let message: Vec<u8> = (0..15).collect();
    assert_eq!(key.hash(&message), 0xa129_ca61_49be_45e5);
}

#[test]
fn identities_that_differ_in_one_byte_mix_apart() {
    let of = |bytes: &[u8]| Identity::new(1, 0, 1, bytes).mixed();
    let mut seen = std::collections::BTreeSet::new();
    for inode in 0..10_000u32 {
        seen.insert(of(&[inode.to_le_bytes(), [9; 4]].concat()));
    }
    assert_eq!(seen.len(), 10_000);
}

#[test]
fn handles_that_differ_have_other_numbers() {
    let hashes: std::collections::HashSet<_> = (0..1000_u64)
        .map(|number| key().seal(&Identity::new(7, 1, 1, &number.to_be_bytes()), 9))
        .map(|handle| handle_hash(handle.as_bytes()))
        .collect();
    assert_eq!(hashes.len(), 1000);
    assert_eq!(handle_hash(&[0; 7]), None);
}

#[test]
fn a_derived_secret_is_another_for_each_key_and_purpose() {
    let other = HandleKey::new(*b"0123456789abcdeg");
    let derived = [key().derived("a"), key().derived("b"), other.derived("a"), *key().as_bytes()];
    for (at, one) in derived.iter().enumerate() {
        assert!(derived[..at].iter().all(|two| one != two), "{at}");
        assert_ne!(one[..8], one[8..]);
    }
    assert_eq!(key().derived("a"), derived[0]);
}
