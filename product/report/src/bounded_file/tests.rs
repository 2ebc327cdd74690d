use std::fs;

use super::read;

#[test]
fn a_file_is_read_up_to_its_bound_and_a_device_less_far() {
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "bounded").unwrap();
    let path = scratch.path().join("file");
    fs::write(&path, "12345").unwrap();
    assert_eq!(read(&path, 5).unwrap(), b"12345");
    assert_eq!(read(&path, 4).unwrap_err().to_string(), "it is larger than 4 B");
    assert_eq!(read("/dev/null".as_ref(), 5).unwrap(), b"");
    for (path, why) in [("/dev/zero", "larger than 1.00 MiB"), ("/", "directory"), ("/no/such", "No such")] {
        let error = read(path.as_ref(), 1 << 40).unwrap_err().to_string();
        assert!(error.contains(why), "{path}: {error}");
    }
    // `/proc` files claim to be empty; this one has no end that a read would have to wait for.
    assert!(!read("/proc/self/status".as_ref(), 1 << 20).unwrap().is_empty());
    assert!(read("/proc/self/status".as_ref(), 10).is_err());
}
