//! Notices to the kernel about others' changes.
//!
//! rule: a mount notifies the kernel of others' changes to objects that it knows, each once, and of no change of its
//! own

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use afflux_engine::{Nanos, Platform};
use afflux_frontend::{MessageMachine, Tried};
use afflux_simulator::SimPlatform;
use afflux_volume::{
    AttributeChange, Caller, CreateHow, DeviceKey, ForeignChange, ForeignListener, Inode, XattrChange,
};
use bytes::Bytes;

use crate::kernel::{Kernel, Notified, ROOT, content, longs, name, notified, words};

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
// rule: a mount notifies the kernel of one change of a disk at a time, and waits for no disk with those of others
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

async fn named_file(kernel: &Kernel) -> Arc<Inode<SimPlatform>> {
    let root = kernel.volume.mount(b"").await.unwrap();
    kernel.volume.lookup(&root, b"file").await.unwrap().0
}

/// The kernel's answer to a call, and the notices that it takes before that, each with the file's size at the time.
fn call_with_notices(kernel: &Kernel, file: u64, opcode: u32, body: &[u8]) -> Vec<(Notified, u64)> {
    let message = kernel.message(opcode, file, body);
    assert!(matches!(kernel.mount.try_answer(&message), Tried::Waits));
    let mut answering = Arc::clone(&kernel.mount).answer(Box::new(message));
    let mut taken = Vec::new();
    let inode = kernel.world.run(named_file(kernel)).unwrap();
    let both = poll_fn(|cx| {
        while let Poll::Ready(Some(notice)) = kernel.mount.poll_notice(cx) {
            taken.push((notified(&notice.message), inode.size()));
            kernel.mount.notice_taken(notice.disk);
        }
        answering.as_mut().poll(cx)
    });
    let reply = kernel.world.run(both).unwrap().unwrap();
    content(reply, kernel.last()).unwrap();
    taken
}

/// A mapping may hold bytes past the end. If the kernel wrote the page back after the growth, the file would show these
/// bytes.
// rule: the kernel drops a file's last page before WRITE, FALLOCATE or COPY_FILE_RANGE moves the end past it
#[test]
fn the_last_page_of_a_file_that_may_be_mapped_is_dropped_before_the_file_grows() {
    const RDONLY: u32 = 0;
    const WRONLY: u32 = 1;
    const RDWR: u32 = 2;
    const WRITE_CACHE: u32 = 1;
    let kernel = Kernel::new();
    let (file, made) = kernel.create(ROOT, "file");
    let dropped = |page: u64, size: u64| vec![((INVAL_INODE, file, longs(&[page, 4096])), size)];
    let write_as = |fh: u64, offset: u64, kind: u32| {
        let head = [longs(&[fh, offset]), words(&[1, kind, 0, 0, 0, 0])].concat();
        call_with_notices(&kernel, file, 16, &[&head[..], b"x"].concat())
    };
    let write = |fh: u64, offset: u64| write_as(fh, offset, 0);
    let allocate = |offset: u64, len: u64, mode: u32| {
        call_with_notices(&kernel, file, 43, &[longs(&[made, offset, len]), words(&[mode, 0])].concat())
    };
    kernel.write(made, 0, &[1; 100]).unwrap();
    assert_eq!(write(made, 5000), dropped(0, 100), "before the size changes");
    assert_eq!(write(made, 5001), [], "no byte comes between");
    assert_eq!(write_as(made, 5500, WRITE_CACHE), [], "the kernel writes a page back while it takes a notice");
    assert_eq!(allocate(0, 6000, 0), dropped(4096, 5501));
    assert_eq!(allocate(0, 9000, 1), [], "the size stays");
    assert_eq!(allocate(7000, 1192, 0x10), dropped(4096, 6000));
    assert_eq!(write(made, 9000), [], "the last page ends with the file");
    let copy = [longs(&[made, 0, file, made, 20_000, 4, 0])].concat();
    assert_eq!(call_with_notices(&kernel, file, 47, &copy), dropped(8192, 9001));
    let (writes, _) = (kernel.open(file, WRONLY).unwrap(), kernel.open(file, RDONLY).unwrap());
    assert_eq!(write(writes, 30_000), dropped(16_384, 20_004), "another open file may be mapped");
    kernel.call(18, file, &[longs(&[made]), words(&[0, 0]), longs(&[0])].concat()).unwrap();
    assert_eq!(write(writes, 40_000), [], "no open file may be mapped to store bytes");
    let again = kernel.open(file, RDWR).unwrap();
    assert_eq!(write(again, 50_000), dropped(36_864, 40_001));
}

/// The kernel may wait for a disk while it drops the page.
#[test]
fn a_page_that_the_kernel_does_not_drop_holds_up_a_write_for_a_bounded_time() {
    let kernel = Kernel::new();
    let (_, fh) = kernel.create(ROOT, "file");
    kernel.write(fh, 0, &[1; 100]).unwrap();
    let began = kernel.world.platform().now();
    kernel.write(fh, 5000, b"x").unwrap();
    let waited_ns = kernel.world.platform().now().since(began);
    assert!((Nanos::SECOND..2 * Nanos::SECOND).contains(&waited_ns), "{waited_ns}");
    kernel.mount.refuse();
    assert!(matches!(kernel.mount.poll_notice(&mut Context::from_waker(Waker::noop())), Poll::Ready(None)));
}
