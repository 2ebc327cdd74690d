//! Extended attributes.

use std::sync::Arc;

use afflux_engine::{Nanos, Platform};
use afflux_volume::{Caller, XattrChange};
use bytes::Bytes;

use crate::kernel::{Kernel, ROOT, content, name, u32_at, words};

const EXISTS: i32 = 17;
const NO_DATA: i32 = 61;
const RANGE: i32 = 34;

fn set(kernel: &Kernel, node: u64, of: &str, value: &[u8], flags: u32) -> Result<(), i32> {
    let body = [words(&[value.len() as u32, flags]), name(of), value.to_vec()].concat();
    kernel.call(21, node, &body).map(drop)
}

fn get(kernel: &Kernel, node: u64, of: &str, size: u32) -> Result<Vec<u8>, i32> {
    kernel.call(22, node, &[words(&[size, 0]), name(of)].concat())
}

#[test]
fn attributes_are_made_replaced_listed_and_removed() {
    let kernel = Kernel::new();
    let (file, _) = kernel.create(ROOT, "file");
    assert_eq!(set(&kernel, file, "user.a", b"1", 2), Err(NO_DATA), "replaced before it is there");
    set(&kernel, file, "user.a", b"12345", 1).unwrap();
    assert_eq!(set(&kernel, file, "user.a", b"1", 1), Err(EXISTS));
    assert_eq!(set(&kernel, file, "user.a", b"1", 3), Err(22));
    assert_eq!(u32_at(&get(&kernel, file, "user.a", 0).unwrap(), 0), 5);
    assert_eq!(get(&kernel, file, "user.a", 4), Err(RANGE));
    assert_eq!(get(&kernel, file, "user.a", 5).unwrap(), b"12345");
    set(&kernel, file, "user.a", b"", 2).unwrap();
    assert_eq!(get(&kernel, file, "user.a", 5).unwrap(), b"");
    set(&kernel, file, "user.b", b"b", 0).unwrap();
    assert_eq!(u32_at(&kernel.call(23, file, &words(&[0, 0])).unwrap(), 0), 14);
    assert_eq!(kernel.call(23, file, &words(&[13, 0])), Err(RANGE));
    let mut listed = kernel.call(23, file, &words(&[14, 0])).unwrap();
    listed.sort_unstable();
    let mut wanted = b"user.a\0user.b\0".to_vec();
    wanted.sort_unstable();
    assert_eq!(listed, wanted);
    set(&kernel, file, "trusted.a", b"", 0).unwrap();
    let mut by_another = kernel.message(23, file, &words(&[99, 0]));
    by_another[24..28].copy_from_slice(&1000_u32.to_ne_bytes());
    let listed = content(kernel.send(by_another).unwrap(), kernel.last()).unwrap();
    assert_eq!(listed.len(), 14, "root's are shown to root alone");
    kernel.call(24, file, &name("user.a")).unwrap();
    assert_eq!(kernel.call(24, file, &name("user.a")), Err(NO_DATA));
    assert_eq!(get(&kernel, file, "user.a", 0), Err(NO_DATA));
}

#[test]
fn a_value_is_found_behind_the_fields_of_newer_kernels() {
    let kernel = Kernel::new();
    let offered = words(&[7, 45, 131_072, u32::MAX, u32::MAX]);
    kernel.call(26, 0, &[offered, vec![0; 44]].concat()).unwrap();
    let (file, _) = kernel.create(ROOT, "file");
    // The mode with its setgid bit, which the last flag takes.
    kernel.set(file, 1 << 0, 68, &words(&[0o102_670])).unwrap();
    let body = |flags| [words(&[3, 0, flags, 0]), name("user.a"), b"abc".to_vec()].concat();
    kernel.call(21, file, &body(0)).unwrap();
    assert_eq!(
        (get(&kernel, file, "user.a", 9).unwrap(), kernel.attributes(file).unwrap().1),
        (b"abc".to_vec(), 0o102_670)
    );
    kernel.call(21, file, &body(1)).unwrap();
    assert_eq!(kernel.attributes(file).unwrap().1, 0o100_670);
    let short = [words(&[4, 0, 0, 0]), name("user.a"), b"abc".to_vec()].concat();
    assert_eq!(kernel.call(21, file, &short), Err(22), "a value that is not there");
}

// rule: a mount knows that a file it made has no capabilities, and asks the host only after a change of attributes
#[test]
fn a_new_file_has_no_capabilities_without_a_question_to_the_host() {
    const CAPABILITIES: &str = "security.capability";
    let kernel = Kernel::new();
    let asks_host = |node| {
        assert_eq!(get(&kernel, node, CAPABILITIES, 100), Err(NO_DATA));
        kernel.waited.get()
    };
    let (file, _) = kernel.create(ROOT, "file");
    assert!(!asks_host(file));
    assert_eq!(get(&kernel, file, "user.a", 1), Err(NO_DATA));
    assert!(kernel.waited.get(), "other attributes");
    set(&kernel, file, "user.a", b"own", 0).unwrap();
    assert!(asks_host(file));

    let (other, _) = kernel.create(ROOT, "other");
    let volume = Arc::clone(&kernel.volume);
    let changing = async move {
        let root = volume.mount(b"").await.unwrap();
        let other = volume.lookup(&root, b"other").await.unwrap().0;
        let change = XattrChange::Set(Bytes::from_static(b"theirs"));
        volume.change_xattr_by(&Caller::SERVER, &other, b"user.a", change).await.result.unwrap();
    };
    kernel.world.run(changing).unwrap();
    assert!(asks_host(other));

    let (third, _) = kernel.create(ROOT, "third");
    let platform = Arc::clone(kernel.world.platform());
    kernel.world.run(async move { platform.sleep_until(platform.now().after(Nanos::SECOND)).await }).unwrap();
    assert!(asks_host(third), "no longer than other attributes are valid");
}
