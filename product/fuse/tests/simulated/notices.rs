//! Notices to the kernel about others' changes.
//!
//! rule: a mount tells the kernel of others' changes to objects that it knows, each once, and of no change of its own

use std::sync::Arc;

use afflux_frontend::MessageMachine;
use afflux_volume::{AttributeChange, Caller, CreateHow, DeviceKey, ForeignChange, ForeignListener, XattrChange};
use bytes::Bytes;

use crate::kernel::{Kernel, ROOT, longs, name, words};

const INVAL_INODE: u32 = 2;
const INVAL_ENTRY: u32 = 3;
/// Another front end of the same server.
const OTHER: &Caller = &Caller::SERVER;

fn bytes_of(node: u64) -> (u32, u64, Vec<u8>) {
    (INVAL_INODE, node, longs(&[0, 0]))
}

fn attributes_of(node: u64) -> (u32, u64, Vec<u8>) {
    (INVAL_INODE, node, longs(&[u64::MAX, 0]))
}

fn name_in(node: u64, of: &str) -> (u32, u64, Vec<u8>) {
    (INVAL_ENTRY, node, [words(&[of.len() as u32, 0]), name(of)].concat())
}

#[test]
fn own_changes_are_not_told() {
    let kernel = Kernel::new();
    let (file, fh) = kernel.create(ROOT, "file");
    kernel.write(fh, 0, &[1; 9000]).unwrap();
    kernel.write(fh, 0, &[2; 100]).unwrap();
    assert!(!kernel.waited.get());
    kernel.set(file, 1 << 0, 68, &words(&[0o100_600])).unwrap();
    kernel.set(file, 1 << 3, 16, &longs(&[10])).unwrap();
    kernel.call(21, file, &[words(&[1, 0]), name("user.a"), b"x".to_vec()].concat()).unwrap();
    kernel.make_directory(ROOT, "sub");
    kernel.call(13, ROOT, &[longs(&[file]), name("two")].concat()).unwrap();
    kernel.call(12, ROOT, &[longs(&[ROOT]), name("two"), name("three")].concat()).unwrap();
    kernel.call(10, ROOT, &name("three")).unwrap();
    kernel.open(file, 0o1001).unwrap();
    kernel.sync(fh).unwrap();
    assert_eq!(kernel.notices(), []);
}

#[test]
fn others_changes_are_told_once_and_only_of_what_the_kernel_knows() {
    let kernel = Kernel::new();
    let (file, fh) = kernel.create(ROOT, "file");
    kernel.write(fh, 0, b"text").unwrap();
    let volume = Arc::clone(&kernel.volume);
    kernel
        .world
        .run(async move {
            let root = volume.mount(b"").await.unwrap();
            let how = CreateHow::Guarded(AttributeChange::default());
            let unknown = volume.create_by(OTHER, &root, b"unknown", how).await.result.unwrap().0;
            let known = volume.lookup(&root, b"file").await.unwrap().0;
            for _ in 0..3 {
                let value = XattrChange::Set(Bytes::new());
                volume.change_xattr_by(OTHER, &known, b"user.a", value).await.result.unwrap();
                volume.write_by(OTHER, None, &known, 0, b"others").await.result.unwrap();
                volume.write_by(OTHER, None, &unknown, 0, b"others").await.result.unwrap();
            }
        })
        .unwrap();
    assert_eq!(kernel.notices(), [name_in(ROOT, "unknown"), bytes_of(file)]);
    assert_eq!(kernel.notices(), []);
    let volume = Arc::clone(&kernel.volume);
    kernel
        .world
        .run(async move {
            let root = volume.mount(b"").await.unwrap();
            volume.remove_by(OTHER, &root, b"file").await.result.unwrap();
        })
        .unwrap();
    assert_eq!(kernel.notices(), [name_in(ROOT, "file"), attributes_of(file)]);
}

/// The kernel may keep a thread that sends a notice until a disk answers.
// rule: a mount tells the kernel of one change of a disk at a time, and waits for no disk with those of others
#[test]
fn a_notice_that_the_kernel_does_not_take_holds_up_its_own_disk_alone() {
    let kernel = Kernel::new();
    kernel.create(ROOT, "file");
    let handles = async {
        let root = kernel.volume.mount(b"").await.unwrap();
        let file = kernel.volume.lookup(&root, b"file").await.unwrap().0;
        [kernel.volume.handle(&root), kernel.volume.handle(&file)]
    };
    let [root, file] = kernel.world.run(handles).unwrap();
    let next = || {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match kernel.mount.poll_notice(&mut context) {
            std::task::Poll::Ready(notice) => notice.map(|notice| notice.disk),
            std::task::Poll::Pending => None,
        }
    };
    let change = |disk, of| kernel.mount.changed(DeviceKey(disk), of);
    change(1, ForeignChange::Bytes(file));
    change(1, ForeignChange::Attributes(root));
    assert_eq!((next(), next()), (Some(1), None));
    change(2, ForeignChange::Attributes(root));
    assert_eq!((next(), next()), (Some(2), None));
    kernel.mount.notice_taken(1);
    assert_eq!((next(), next()), (Some(1), None));
    kernel.mount.notice_taken(1);
    assert_eq!(next(), None);
}

#[test]
fn the_sender_ends_with_the_mount() {
    let kernel = Kernel::new();
    kernel.mount.refuse();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(matches!(kernel.mount.poll_notice(&mut context), std::task::Poll::Ready(None)));
}
